#include "cairn/solvers/order/device/caduceus_batch.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/solvers/order/device/caduceus_kernel.h"
#include "cairn/solvers/order/internal/segment_caduceus.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/fiber_machine.h"
#include "cairn/tests/support/random_graph.h"

// Many caduceus graphs at once against the solver that takes one, and that is tested against brute force.
namespace cairn::solvers {
namespace {

using core::Segment;
using solvers::SegmentCaduceus;
using tests::Random;

std::vector<Segment> random_chain(Random& random, std::int64_t steps, std::int64_t most) {
  std::vector<Segment> chain;
  for (; steps > 0; --steps) core::append_segment(chain, {random.between(0, most), random.between(0, most)});
  return chain;
}

struct Instance {
  std::vector<Segment> staff;
  struct Bend {
    std::int32_t first, last;
    std::vector<Segment> segments;
  };
  std::vector<Bend> bends;
};

Instance random_instance(Random& random) {
  const std::int64_t most = random.pick(std::vector<std::int64_t>{0, 1, 2, 5, 30, 1000});
  Instance instance;
  const std::int64_t staff = random.between(0, 12);
  for (std::int64_t i = 0; i < staff; ++i) instance.staff.push_back({random.between(0, most), random.between(0, most)});
  for (std::int64_t bends = random.between(0, 14); bends > 0; --bends) {
    const auto first = static_cast<std::int32_t>(random.chance(30) ? 0 : random.between(0, staff));
    const auto last = static_cast<std::int32_t>(random.chance(30) ? staff : random.between(first, staff));
    instance.bends.push_back({first, last, random_chain(random, random.between(0, 8), most)});
    if (random.chance(10)) instance.bends.push_back(instance.bends.back());
  }
  return instance;
}

CaduceusBatch batch_of(const std::vector<Instance>& instances) {
  CaduceusBatch batch;
  for (const Instance& instance : instances) {
    batch.add_graph(instance.staff);
    for (const Instance::Bend& bend : instance.bends) batch.add_bend(bend.first, bend.last, bend.segments);
  }
  return batch;
}

/// By id.
std::vector<Segment> segments_of(const Instance& instance) {
  std::vector<Segment> segments = instance.staff;
  for (const Instance::Bend& bend : instance.bends) {
    segments.insert(segments.end(), bend.segments.begin(), bend.segments.end());
  }
  return segments;
}

std::int64_t peak_of(const Instance& instance, const std::vector<std::int32_t>& order) {
  const std::vector<Segment> segments = segments_of(instance);
  std::int64_t bytes = 0, peak = 0;
  for (const std::int32_t id : order) {
    peak = std::max(peak, bytes + segments[static_cast<std::size_t>(id)].rise);
    bytes += segments[static_cast<std::size_t>(id)].change();
  }
  return peak;
}

/// Every id once, each chain in its order, and each bend within its gaps?
bool valid(const Instance& instance, const std::vector<std::int32_t>& order) {
  std::vector<std::int32_t> place(segments_of(instance).size(), -1);
  if (order.size() != place.size()) return false;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || order[i] >= static_cast<std::int32_t>(place.size())) return false;
    if (place[static_cast<std::size_t>(order[i])] >= 0) return false;
    place[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
  }
  const auto staff = static_cast<std::int32_t>(instance.staff.size());
  if (!std::is_sorted(place.begin(), place.begin() + staff)) return false;
  auto begin = place.begin() + staff;
  for (const Instance::Bend& bend : instance.bends) {
    const auto end = begin + static_cast<std::ptrdiff_t>(bend.segments.size());
    if (!std::is_sorted(begin, end)) return false;
    if (begin != end && bend.first > 0 && *begin < place[static_cast<std::size_t>(bend.first) - 1]) return false;
    if (begin != end && bend.last<staff&&*(end - 1)> place[static_cast<std::size_t>(bend.last)]) return false;
    begin = end;
  }
  return true;
}

std::vector<Segment> profile_of(const Instance& instance, const std::vector<std::int32_t>& order) {
  const std::vector<Segment> segments = segments_of(instance);
  std::vector<Segment> profile;
  for (const std::int32_t id : order) core::append_segment(profile, segments[static_cast<std::size_t>(id)]);
  return profile;
}

bool dominates(const std::vector<Segment>& a, const std::vector<Segment>& b) {
  return core::dominates(core::CanonicalView(0, a), core::CanonicalView(0, b));
}

TEST_CASE("caduceus graphs solved in bulk have the peaks and profiles of those solved one by one", "[sim]") {
  Random random(1);
  std::vector<Instance> instances;
  for (int i = 0; i < 20'000; ++i) instances.push_back(random_instance(random));
  const CaduceusBatch batch = batch_of(instances);
  core::HostMachine machine(2);
  const CaduceusAnswers least = solve_caduceus(batch, CaduceusGoal::least_peak, machine);
  const CaduceusAnswers dominant = solve_caduceus(batch, CaduceusGoal::dominant, machine);
  REQUIRE(least.peaks.size() == instances.size());
  SegmentCaduceus one;
  int moved = 0;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const Instance& instance = instances[i];
    one.clear();
    for (const Segment& segment : instance.staff) one.add_staff(segment);
    for (const Instance::Bend& bend : instance.bends) one.add_bend(bend.first, bend.last, bend.segments);
    const std::vector<std::int32_t> optimal = one.optimal_order();
    const std::vector<std::int32_t> best = one.dominant_order();
    const auto order_in = [&](const CaduceusAnswers& answers) {
      const auto begin = answers.orders.begin() + batch.graphs()[i].segment;
      return std::vector<std::int32_t>(begin, begin + batch.graphs()[i].segments);
    };
    INFO("instance " << i);
    REQUIRE(least.peaks[i] == one.peak(optimal));
    REQUIRE(valid(instance, order_in(least)));
    REQUIRE(peak_of(instance, order_in(least)) == least.peaks[i]);
    REQUIRE(valid(instance, order_in(dominant)));
    REQUIRE(dominant.peaks[i] == least.peaks[i]);
    REQUIRE(dominates(profile_of(instance, order_in(dominant)), profile_of(instance, best)));
    std::vector<std::int32_t> as_given(optimal.size());
    std::iota(as_given.begin(), as_given.end(), 0);
    moved += peak_of(instance, order_in(least)) < peak_of(instance, as_given) ? 1 : 0;
  }
  CHECK(moved > 10'000);
}

TEST_CASE("caduceus graphs solved in bulk are solved alike on every machine", "[sim]") {
  Random random(2);
  std::vector<Instance> instances;
  for (int i = 0; i < 1000; ++i) instances.push_back(random_instance(random));
  const CaduceusBatch batch = batch_of(instances);
  core::HostMachine one(1), two(2);
  tests::FiberMachine forwards(tests::Threads::forward), backwards(tests::Threads::reverse);
  for (const CaduceusGoal goal : {CaduceusGoal::least_peak, CaduceusGoal::dominant}) {
    const CaduceusAnswers expected = solve_caduceus(batch, goal, one);
    const auto check = [&](const CaduceusAnswers& answers) {
      CHECK(answers.peaks == expected.peaks);
      CHECK(answers.orders == expected.orders);
    };
    check(solve_caduceus(batch, goal, two));
    check(device::solve_caduceus(batch, goal, forwards));
    check(device::solve_caduceus(batch, goal, backwards));
  }
}

TEST_CASE("a batch of no caduceus graph and one of empty ones", "[sim]") {
  core::HostMachine machine(1);
  CaduceusBatch batch;
  CHECK(solve_caduceus(batch, CaduceusGoal::least_peak, machine).peaks.empty());
  CHECK_THROWS_AS(batch.add_bend(0, 0, {}), core::InputError);
  batch.add_graph({});
  batch.add_graph({});
  CHECK(solve_caduceus(batch, CaduceusGoal::dominant, machine).peaks == std::vector<std::int64_t>{0, 0});
  CHECK_THROWS_AS(batch.add_bend(0, 1, {}), core::InputError);
  CHECK_THROWS_AS(batch.add_bend(-1, 0, {}), core::InputError);
}

}  // namespace
}  // namespace cairn::solvers
