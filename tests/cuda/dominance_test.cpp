#include "cairn/cuda/dominance.h"

#include <cstdint>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/sim/canonical_batch.h"
#include "cairn/sim/dominance.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cuda/no_device.h"
#include "cairn/tests/sim/dominance_cases.h"

namespace cairn::cuda {
namespace {

using tests::Values;

template <class Set>
std::vector<std::uint64_t> all_words(const Set& set, std::int64_t most_bytes) {
  std::vector<std::uint64_t> words;
  set.for_each_band(most_bytes, [&](const sim::DominanceBand& band) {
    words.insert(words.end(), band.words.begin(), band.words.end());
  });
  return words;
}

TEST_CASE("canonical profiles on a device are the host's") {
  if (tests::no_device()) return;
  tests::Random random(1);
  for (const std::int64_t count : {0, 1, 70, 3000}) {
    for (const std::int64_t length : {1, 5, 200}) {
      const tests::Ragged ragged(tests::population(random, count, length));
      REQUIRE(cuda::canonical_batch(ragged.values, ragged.offsets) ==
              sim::canonical_batch(ragged.values, ragged.offsets));
    }
  }
}

TEST_CASE("merged chains on a device are the host's") {
  if (tests::no_device()) return;
  tests::Random random(2);
  for (const std::int64_t set_count : {0, 1, 40, 2000}) {
    sim::CanonicalBatch chains;
    std::vector<std::int64_t> sets{0};
    for (std::int64_t set = 0; set < set_count; ++set) {
      for (const Values& values : tests::population(random, random.between(0, 9), 20)) {
        chains.add(core::canonical(values));
      }
      sets.push_back(chains.size());
    }
    REQUIRE(cuda::merge_segments(chains, sets) == sim::merge_segments(chains, sets));
  }
}

TEST_CASE("dominance on a device is the host's") {
  if (tests::no_device()) return;
  tests::Random random(3);
  for (const std::int64_t count : {0, 1, 2, 63, 64, 65, 70, 3000, 40'000}) {
    INFO(count);
    const std::vector<Values> profiles = tests::population(random, count, count % 2 == 0 ? 8 : 60);
    const sim::CanonicalBatch batch = tests::canonical_one_by_one(profiles);
    const sim::DominanceSet on_host(batch);
    const DominanceSet on_device(batch);
    REQUIRE(on_device.size() == count);
    REQUIRE(on_device.non_dominated() == on_host.non_dominated());
    if (count <= 3000) {
      REQUIRE(all_words(on_device, 1 << 20) == all_words(on_host, 1 << 20));
      REQUIRE(all_words(on_device, 1000) == all_words(on_host, 1 << 20));
    }
    for (int i = 0; i < 5 && count > 0; ++i) {
      const core::CanonicalProfile one = core::canonical(tests::near_values(random, random.pick(profiles)));
      REQUIRE(on_device.dominated_by(one) == on_host.dominated_by(one));
      REQUIRE(on_device.dominators_of(one) == on_host.dominators_of(one));
    }
  }
}

TEST_CASE("thousands of profiles on a device of which none dominates another") {
  if (tests::no_device()) return;
  std::vector<Values> profiles;
  for (std::int64_t i = 0; i < 40'000; ++i) profiles.push_back({0, 100'000 - i, i, i + 1, i});
  CHECK(DominanceSet(tests::canonical_one_by_one(profiles)).non_dominated().size() == profiles.size());
}

}  // namespace
}  // namespace cairn::cuda
