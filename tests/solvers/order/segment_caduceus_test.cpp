#include <algorithm>
#include <cstdint>
#include <vector>

#include "cairn/solvers/order/internal/chains/dominant.h"
#include "cairn/solvers/order/internal/papers/caduceus.h"
#include "cairn/solvers/order/internal/reduction/step_graph.h"
#include "cairn/solvers/order/internal/search/exact.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"

// Tests caduceus graphs (solvers/order/device/caduceus.h), which consist of a path, the staff, and of further paths,
// the bends, that leave and rejoin it. Here, both are given by segments. The exact search gives the expected results,
// because the graphs are too large for brute force.
namespace cairn::solvers::segment_caduceus_test {
namespace {

using core::Segment;
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

/// Returns all segments in the order of their ids: those of the staff, and afterwards those of each bend.
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

/// Returns whether the order contains every id once, keeps the segments of the staff and of each bend in order, and
/// runs each bend between the two places at which it leaves and rejoins the staff.
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

/// Returns the step graph of the instance. Each segment becomes a step, whose number is the segment's id.
StepGraph step_graph(const Instance& instance) {
  std::vector<StepGraph::Step> steps;
  std::vector<StepGraph::Edge> edges;
  for (const Segment& segment : segments_of(instance)) steps.push_back({segment.rise, segment.drop, 0});
  const auto staff = static_cast<StepId>(instance.staff.size());
  for (StepId s = 1; s < staff; ++s) edges.emplace_back(s - 1, s);
  StepId id = staff;
  for (const Instance::Bend& bend : instance.bends) {
    const auto end = static_cast<StepId>(id + bend.segments.size());
    if (id < end && bend.first > 0) edges.emplace_back(bend.first - 1, id);
    if (id < end && bend.last < staff) edges.emplace_back(end - 1, bend.last);
    for (; id < end; ++id) {
      if (id + 1 < end) edges.emplace_back(id, id + 1);
    }
  }
  return StepGraph(std::move(steps), std::move(edges));
}

TEST_CASE("caduceus graphs given by segments have the least peaks and dominant orders of the exact search", "[order]") {
  Random random(1);
  int moved = 0, proved = 0, compared = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Instance instance = random_instance(random);
    CaduceusWorkspace work({static_cast<std::int32_t>(instance.staff.size()),
                            static_cast<std::int32_t>(instance.bends.size()),
                            static_cast<std::int32_t>(segments_of(instance).size())});
    for (const Segment& segment : instance.staff) work.graph.add_staff(segment);
    for (const Instance::Bend& bend : instance.bends) {
      std::copy(bend.segments.begin(), bend.segments.end(), work.graph.begin_bend().first);
      work.graph.end_bend(bend.first, bend.last, static_cast<std::int32_t>(bend.segments.size()));
    }
    work.graph.rank();
    INFO("instance " << i);
    const std::int64_t peak = work.solver.least_peak(work.graph);
    const auto first_of = [&](const auto& order) { return std::vector(order.first, order.first + work.graph.count); };
    const std::vector<std::int32_t> optimal = first_of(work.solver.optimal_order());
    REQUIRE(valid(instance, optimal));
    REQUIRE(peak_of(instance, optimal) == peak);
    work.solver.dominant(work.graph);
    const std::vector<std::int32_t> dominant = first_of(work.solver.dominant_order());
    REQUIRE(valid(instance, dominant));
    REQUIRE(peak_of(instance, dominant) == peak);
    REQUIRE(dominates(profile_of(instance, dominant), profile_of(instance, optimal)));

    const StepGraph graph = step_graph(instance);
    core::Limit limit{.work = 20'000};
    core::Stopwatch watch(limit);
    const ExactResult exact = exact_order(graph, ExactOptions{}, watch);
    if (exact.proved) REQUIRE(peak == exact.peak);
    REQUIRE(peak >= exact.lower_bound);
    proved += exact.proved ? 1 : 0;
    if (exact.proved && i % 4 == 0) {
      core::Stopwatch again(limit);
      if (const auto best = find_schedule_general(graph, exact_oracle(ExactOptions{}, again))) {
        ++compared;
        REQUIRE(dominates(profile_of(instance, dominant), profile_of(instance, *best)));
      }
    }
    moved += peak < peak_of(instance, tests::numbers_below(work.graph.count)) ? 1 : 0;
  }
  CHECK(moved > 10'000);
  CHECK(proved > 10'000);
  CHECK(compared > 2000);
}

}  // namespace
}  // namespace cairn::solvers::segment_caduceus_test
