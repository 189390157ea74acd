#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/error.h"
#include "cairn/core/machine/support/machine.h"
#include "cairn/sim/canonical_batch.h"
#include "cairn/sim/device/dominance/canonical_batch.h"
#include "cairn/sim/device/dominance/dominance.h"
#include "cairn/sim/support/dominance.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/core/order_cases.h"
#include "cairn/tests/reference/reference_order.h"
#include "cairn/tests/sim/dominance_cases.h"
#include "cairn/tests/support/fiber_machine.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests::dominance_property_test {

using namespace sim;

namespace {

template <class Check>
void on_one_thread(const Check& check) {
  core::HostMachine machine(1);
  check(machine);
}
/// Calls check(machine) for each kind of machine. The results must be the same on all machines.
template <class Check>
void on_every_machine(const Check& check) {
  for (const int threads : {1, 2}) {
    INFO(threads << " threads");
    core::HostMachine machine(threads);
    check(machine);
  }
  for (const bool reverse : {false, true}) {
    INFO("fibers, " << (reverse ? "backwards" : "forwards"));
    FiberMachine machine(reverse ? Threads::reverse : Threads::forward);
    check(machine);
  }
}

template <class Set>
Matrix matrix_by_bands(const Set& set, std::int64_t most_bytes) {
  Matrix matrix;
  set.for_each_band(most_bytes, [&](const DominanceBand& band) {
    REQUIRE(band.first_row == static_cast<std::int64_t>(matrix.size()));
    REQUIRE(band.columns == set.size());
    REQUIRE(static_cast<std::int64_t>(band.words.size_bytes()) <= most_bytes);
    for (std::int64_t row = band.first_row; row < band.first_row + band.rows; ++row) {
      matrix.emplace_back();
      for (std::int64_t column = 0; column < band.columns; ++column)
        matrix.back().push_back(band.dominates(row, column));
    }
  });
  return matrix;
}

TEST_CASE("Canonical profiles in bulk are those of one at a time", "[dominance]") {
  Random random(1);
  for (const std::int64_t count : {0, 1, 2, 7, 64, 70, 3000}) {
    for (const std::int64_t length : {1, 3, 10, 60}) {
      const std::vector<Values> profiles = population(random, count, length);
      const Ragged ragged(profiles);
      const CanonicalBatch expected = canonical_one_by_one(profiles);
      on_every_machine([&](auto& machine) {
        REQUIRE(device::canonical_batch(machine, std::span<const std::int64_t>(ragged.values), ragged.offsets) ==
                expected);
      });
      REQUIRE(canonical_batch(ragged.values, ragged.offsets) == expected);
    }
  }
}

TEST_CASE("Canonical profiles in bulk for all short sequences of four values", "[dominance]") {
  std::vector<Values> all;
  for_each_sequence(3, 6, [&](const Values& values) { all.push_back(values); });
  const Ragged ragged(all);
  REQUIRE(canonical_batch(ragged.values, ragged.offsets, 2) == canonical_one_by_one(all));
}

TEST_CASE("A batch gives back its profiles", "[dominance]") {
  Random random(2);
  std::vector<core::CanonicalProfile> profiles;
  for (const Values& values : population(random, 100, 12)) profiles.push_back(core::canonical(values));
  const CanonicalBatch batch = canonical_batch(profiles);
  REQUIRE(batch.size() == 100);
  for (std::int64_t i = 0; i < batch.size(); ++i) {
    const core::CanonicalProfile back = batch.profile(i);
    CHECK(back.start == profiles[static_cast<std::size_t>(i)].start);
    CHECK(back.segments == profiles[static_cast<std::size_t>(i)].segments);
    CHECK(back.segments.data() != batch[i].segments.data());
    CHECK(batch[i].segments.size() == back.segments.size());
  }
  CHECK(CanonicalBatch().size() == 0);
}

TEST_CASE("Offsets that are none are refused", "[dominance]") {
  const std::vector<std::int64_t> values{1, 2, 3};
  using Offsets = std::vector<std::int64_t>;
  for (const Offsets& offsets : {Offsets{}, Offsets{0}, Offsets{0, 2}, Offsets{1, 3}, Offsets{0, 2, 2, 3},
                                 Offsets{0, 4, 3}, Offsets{0, 3, 2, 3}, Offsets{0, 1, 4}}) {
    INFO(show(offsets));
    CHECK_THROWS_AS(canonical_batch(values, offsets), core::InputError);
  }
  CHECK_THROWS_AS(CanonicalBatch({1, 2}, {0, 1}, {{1, 1}}), core::InputError);
  CHECK_THROWS_AS(CanonicalBatch({1, 2}, {0, 1, 0}, {}), core::InputError);
  const CanonicalBatch two = canonical_one_by_one({{1, 2}, {2, 1}});
  for (const Offsets& sets : {Offsets{}, Offsets{0, 1}, Offsets{0, 2, 1, 2}, Offsets{0, 3}}) {
    CHECK_THROWS_AS(merge_segments(two, sets), core::InputError);
  }
}

TEST_CASE("All pairs are those of Definition 2.3", "[dominance]") {
  Random random(3);
  std::int64_t pairs = 0, dominated = 0;
  const auto check = [&](std::int64_t count, std::int64_t length) {
    const std::vector<Values> profiles = population(random, count, length);
    const Matrix expected = literal_matrix(profiles);
    for (const auto& row : expected) {
      pairs += count;
      for (const bool bit : row) dominated += bit;
    }
    const CanonicalBatch batch = canonical_one_by_one(profiles);
    const auto compare = [&](auto& machine) {
      const device::DominanceSet set(machine, batch);
      REQUIRE(matrix_by_bands(set, 1 << 20) == expected);
      REQUIRE(matrix_by_bands(set, 24) == expected);
    };
    count % 10 < 2 ? on_every_machine(compare) : on_one_thread(compare);
  };
  for (std::int64_t count = 0; count <= 70; ++count) check(count, 1 + count % 12);
  for (int i = 0; i < 20; ++i) check(69, 40);
  check(190, 8);
  CHECK(dominated > pairs / 20);
  CHECK(dominated < pairs / 2);
}

TEST_CASE("All pairs of all short sequences of three values", "[dominance]") {
  std::vector<Values> all;
  for_each_sequence(2, 5, [&](const Values& values) { all.push_back(values); });
  const Matrix expected = literal_matrix(all);
  const auto set = dominance_set(canonical_one_by_one(all), 2);
  CHECK(matrix_by_bands(*set, 10'000) == expected);
  CHECK(set->non_dominated() == literal_non_dominated(expected));
}

TEST_CASE("A band needs room for one row", "[dominance]") {
  const auto set = dominance_set(canonical_one_by_one(std::vector<Values>(65, Values{1, 2})), 1);
  CHECK_THROWS_AS(set->for_each_band(15, [](const DominanceBand&) {}), core::InputError);
  int bands = 0;
  set->for_each_band(16, [&](const DominanceBand& band) {
    ++bands;
    CHECK(band.words[0] == ~std::uint64_t{0});
    CHECK(band.words[1] == 1);
  });
  CHECK(bands == 65);
}

TEST_CASE("One against many is core dominates both ways", "[dominance]") {
  Random random(4);
  int dominated = 0, dominating = 0, all = 0;
  for (int round = 0; round < 40; ++round) {
    const std::vector<Values> profiles = population(random, 1 + random.below(300), 30);
    const CanonicalBatch batch = canonical_one_by_one(profiles);
    // The list also has profiles that are not in the set. One of them is below all values of the set, and one is above
    // all of them.
    std::vector<Values> ones{random.pick(profiles),
                             near_values(random, random.pick(profiles)),
                             near_dominated(random, random.pick(profiles)),
                             random_values(random, 30),
                             {std::int64_t{-1} << 61},
                             {std::int64_t{1} << 61}};
    for (const Values& one : ones) {
      const core::CanonicalProfile a = core::canonical(one);
      std::vector<std::uint8_t> below, above;
      for (const Values& profile : profiles) {
        below.push_back(core::dominates(one, profile));
        above.push_back(core::dominates(profile, one));
        dominated += below.back();
        dominating += above.back();
        ++all;
      }
      on_every_machine([&](auto& machine) {
        const device::DominanceSet set(machine, batch);
        REQUIRE(set.dominated_by(a) == below);
        REQUIRE(set.dominators_of(a) == above);
      });
    }
  }
  CHECK(dominated > all / 10);
  CHECK(dominating > all / 10);
  const auto empty = dominance_set(CanonicalBatch());
  CHECK(empty->dominated_by(core::canonical(Values{1})).empty());
  CHECK(empty->dominators_of(core::canonical(Values{1})).empty());
  CHECK(empty->non_dominated().empty());
}

TEST_CASE("Dominance in bulk for the widest values that profiles have", "[dominance]") {
  std::vector<Values> all;
  for_each_wide_sequence(4, [&](const Values& values) { all.push_back(values); });
  const auto set = dominance_set(canonical_one_by_one(all), 1);
  const Matrix expected = literal_matrix(all);
  CHECK(matrix_by_bands(*set, 1000) == expected);
  CHECK(set->non_dominated() == literal_non_dominated(expected));
}

TEST_CASE("The non-dominated profiles are those of brute force", "[dominance]") {
  Random random(5);
  std::size_t results = 0, profiles_in_all = 0;
  const auto check = [&](const std::vector<Values>& profiles) {
    const std::vector<std::int64_t> expected = literal_non_dominated(literal_matrix(profiles));
    results += expected.size();
    profiles_in_all += profiles.size();
    const CanonicalBatch batch = canonical_one_by_one(profiles);
    const auto compare = [&](auto& machine) {
      REQUIRE(device::DominanceSet(machine, batch).non_dominated() == expected);
    };
    profiles.size() % 10 < 2 ? on_every_machine(compare) : on_one_thread(compare);
  };
  for (std::int64_t count = 0; count <= 70; ++count) check(population(random, count, 1 + count % 12));
  for (int i = 0; i < 3000; ++i) check(population(random, random.between(2, 9), 6));
  for (int i = 0; i < 300; ++i) check(population(random, random.between(22, 29), 6));
  CHECK(results > profiles_in_all / 20);
}

/// There are thousands of profiles with few different values. So the profiles need many blocks, and many of the keys by
/// which they are sorted are equal.
TEST_CASE("The non-dominated of thousands with equal keys and duplicates", "[dominance]") {
  Random random(6);
  for (const std::int64_t highest : {1, 3, 40}) {
    std::vector<Values> profiles;
    for (int i = 0; i < 4000; ++i) {
      Values profile{0};
      for (std::int64_t length = random.between(0, 9); length > 0; --length)
        profile.push_back(random.between(0, highest));
      // All profiles end with the same highest value and the same last value, so that their keys are equal.
      profile.push_back(highest + 1);
      profile.push_back(0);
      profiles.push_back(profile);
    }
    const CanonicalBatch batch = canonical_one_by_one(profiles);
    std::vector<std::int64_t> expected;
    for (std::size_t i = 0; i < profiles.size(); ++i) {
      bool stays = true;
      const core::CanonicalView one = batch[static_cast<std::int64_t>(i)];
      for (std::int64_t j = 0; j < batch.size() && stays; ++j) {
        if (j == static_cast<std::int64_t>(i) || !core::dominates(batch[j], one)) continue;
        stays = j > static_cast<std::int64_t>(i) && core::dominates(one, batch[j]);
      }
      if (stays) expected.push_back(static_cast<std::int64_t>(i));
    }
    on_every_machine([&](auto& machine) { REQUIRE(device::DominanceSet(machine, batch).non_dominated() == expected); });
    REQUIRE(non_dominated(batch) == expected);
  }
}

/// If no profile dominates another one, all profiles must remain, although they are compared in many blocks.
TEST_CASE("Thousands of profiles of which none dominates another", "[dominance]") {
  std::vector<Values> profiles;
  for (std::int64_t i = 0; i < 5000; ++i) profiles.push_back({0, 100'000 - i, i, i + 1, i});
  std::vector<std::int64_t> all(profiles.size());
  std::iota(all.begin(), all.end(), 0);
  const CanonicalBatch batch = canonical_one_by_one(profiles);
  for (const int threads : {1, 2}) REQUIRE(non_dominated(batch, threads) == all);
  // The next profile and profile 0 dominate each other, because dominance ignores the small rise at the end of profile
  // 0. So only the first of the two profiles remains.
  profiles.push_back({0, 100'000, 0});
  REQUIRE(non_dominated(canonical_one_by_one(profiles), 2).size() == 5000);
  std::vector<Values> same(3000, Values{0, 5, 1, 3});
  REQUIRE(non_dominated(canonical_one_by_one(same), 2) == std::vector<std::int64_t>{0});
}

TEST_CASE("Sets of chains merge as they do one by one", "[dominance]") {
  Random random(7);
  std::int64_t shrunk = 0;
  for (const std::int64_t set_count : {0, 1, 2, 40, 70, 1500}) {
    for (const std::int64_t length : {1, 4, 20}) {
      CanonicalBatch chains, expected;
      std::vector<std::int64_t> sets{0};
      for (std::int64_t set = 0; set < set_count; ++set) {
        std::vector<std::vector<core::Segment>> parts;
        core::CanonicalProfile merged;
        for (const Values& values : population(random, random.between(0, 9), length)) {
          const core::CanonicalProfile part = core::canonical(values);
          merged.start += part.start;
          parts.push_back(part.segments);
          chains.add(part);
        }
        sets.push_back(chains.size());
        merged.segments = core::merge_segments(parts);
        expected.add(merged);
      }
      shrunk +=
          static_cast<std::int64_t>(chains.segments().size()) - static_cast<std::int64_t>(expected.segments().size());
      on_every_machine([&](auto& machine) { REQUIRE(device::merge_segments(machine, chains, sets) == expected); });
      REQUIRE(merge_segments(chains, sets, 2) == expected);
    }
  }
  CHECK(shrunk > 0);
}

}  // namespace
}  // namespace cairn::tests::dominance_property_test
