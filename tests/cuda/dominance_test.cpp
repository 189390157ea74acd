#include "cairn/cuda/support/dominance.h"

#include <cstdint>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/sim/canonical_batch.h"
#include "cairn/sim/support/dominance.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cuda/no_device.h"
#include "cairn/tests/sim/dominance_cases.h"

namespace cairn::tests::dominance_test {
namespace {

template <class Set>
std::vector<std::uint64_t> all_words(const Set& set, std::int64_t most_bytes) {
  std::vector<std::uint64_t> words;
  set.for_each_band(most_bytes, [&](const sim::DominanceBand& band) {
    words.insert(words.end(), band.words.begin(), band.words.end());
  });
  return words;
}

void check_canonical(const std::vector<std::int64_t>& counts) {
  Random random(1);
  for (const std::int64_t count : counts) {
    for (const std::int64_t length : {1, 5, 200}) {
      const Ragged ragged(population(random, count, length));
      REQUIRE(cuda::canonical_batch(ragged.values, ragged.offsets) ==
              sim::canonical_batch(ragged.values, ragged.offsets));
    }
  }
}

void check_merged(const std::vector<std::int64_t>& set_counts) {
  Random random(2);
  for (const std::int64_t set_count : set_counts) {
    sim::CanonicalBatch chains;
    std::vector<std::int64_t> sets{0};
    for (std::int64_t set = 0; set < set_count; ++set) {
      for (const Values& values : population(random, random.between(0, 9), 20)) {
        chains.add(core::canonical(values));
      }
      sets.push_back(chains.size());
    }
    REQUIRE(cuda::merge_segments(chains, sets) == sim::merge_segments(chains, sets));
  }
}

void check_dominance(const std::vector<std::int64_t>& counts) {
  Random random(3);
  for (const std::int64_t count : counts) {
    INFO(count);
    const std::vector<Values> profiles = population(random, count, count % 2 == 0 ? 8 : 60);
    const sim::CanonicalBatch batch = canonical_one_by_one(profiles);
    const auto on_host = sim::dominance_set(batch);
    const auto on_device = cuda::dominance_set(batch);
    REQUIRE(on_device->size() == count);
    REQUIRE(on_device->non_dominated() == on_host->non_dominated());
    if (count <= 3000) {
      REQUIRE(all_words(*on_device, 1 << 20) == all_words(*on_host, 1 << 20));
      REQUIRE(all_words(*on_device, 1000) == all_words(*on_host, 1 << 20));
    }
    for (int i = 0; i < 5 && count > 0; ++i) {
      const core::CanonicalProfile one = core::canonical(near_values(random, random.pick(profiles)));
      REQUIRE(on_device->dominated_by(one) == on_host->dominated_by(one));
      REQUIRE(on_device->dominators_of(one) == on_host->dominators_of(one));
    }
  }
}

TEST_CASE("canonical profiles, merged chains and dominance on a device are the host's, for a few", "[sanitize]") {
  if (no_device()) return;
  check_canonical({0, 1, 70});
  check_merged({0, 1, 40});
  check_dominance({0, 1, 65, 300});
}

TEST_CASE("canonical profiles on a device are the host's") {
  if (no_device()) return;
  check_canonical({0, 1, 70, 3000});
}

TEST_CASE("merged chains on a device are the host's") {
  if (no_device()) return;
  check_merged({0, 1, 40, 2000});
}

TEST_CASE("dominance on a device is the host's") {
  if (no_device()) return;
  check_dominance({0, 1, 2, 63, 64, 65, 70, 3000, 40'000});
}

TEST_CASE("thousands of profiles on a device of which none dominates another") {
  if (no_device()) return;
  std::vector<Values> profiles;
  for (std::int64_t i = 0; i < 40'000; ++i) profiles.push_back({0, 100'000 - i, i, i + 1, i});
  CHECK(cuda::dominance_set(canonical_one_by_one(profiles))->non_dominated().size() == profiles.size());
}

}  // namespace
}  // namespace cairn::tests::dominance_test
