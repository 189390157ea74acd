#include "cairn/core/profile.h"
#include "cairn/solvers/remat/repair/evict.h"
#include "cairn/solvers/remat/repair/retain.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::solvers::refine_test {
namespace {

using core::Graph;
using core::Schedule;
namespace reference = core::reference;

Schedule retained(const Graph& graph, const Schedule& schedule, std::int64_t budget, std::uint64_t noise_seed = 0) {
  core::EditableSchedule work(graph);
  work.assign(core::drop_unread(graph, schedule).steps);
  retain_where_it_fits(graph, work, budget, noise_seed);
  return {work.steps()};
}

TEST_CASE("retaining keeps schedules valid and within the budget, and never costs more") {
  tests::Random random(2);
  int removed = 0;
  for (int i = 0; i < 4000; ++i) {
    const Graph graph = tests::random_graph(random);
    const Schedule schedule = tests::random_schedule(random, graph);
    const std::int64_t before = reference::peak(graph, schedule);
    const std::int64_t budget = random.between(core::peak_lower_bound(graph), before + before / 4 + 1);
    const Schedule after = retained(graph, schedule, budget, random.chance(50) ? 0 : 17);
    REQUIRE(reference::valid(graph, after));
    CHECK(reference::cost(graph, after) <= reference::cost(graph, schedule));
    CHECK(reference::peak(graph, after) <= std::max(before, budget));
    removed += reference::recomputed(after) < reference::recomputed(reference::drop_unread(graph, schedule));
  }
  CHECK(removed > 100);
}

TEST_CASE("with enough memory retaining removes every recomputation") {
  tests::Random random(3);
  for (int i = 0; i < 1000; ++i) {
    const Graph graph = tests::random_graph(random);
    const Schedule schedule = tests::random_schedule(random, graph);
    std::int64_t everything = 0;
    for (core::NodeId v = 0; v < graph.node_count(); ++v)
      everything += graph.size(v) + std::max<std::int64_t>(0, graph.scratch(v));
    CHECK(reference::recomputed(retained(graph, schedule, everything)) == 0);
  }
}

TEST_CASE("a long chain of values that become unread is taken out without recursion") {
  constexpr core::NodeId kNodes = 200'000;
  core::GraphBuilder builder;
  for (core::NodeId v = 0; v < kNodes; ++v) {
    core::Node node{.size = 1};
    if (v > 0) node.inputs.push_back(v - 1);
    builder.add(std::move(node));
  }
  const Graph graph = builder.build();
  // All nodes of the chain except the last run twice. Only the second runs are needed, because they lead to the value
  // that the last node reads. So all first runs must be removed.
  Schedule schedule = core::baseline_schedule(graph);
  schedule.steps.pop_back();
  const std::vector<core::NodeId> once = schedule.steps;
  schedule.steps.insert(schedule.steps.end(), once.begin(), once.end());
  schedule.steps.push_back(kNodes - 1);
  CHECK(retained(graph, schedule, 10).length() == kNodes);
}

TEST_CASE("eviction gives valid schedules, within the budget where it says so") {
  tests::Random random(4);
  int fitted = 0, tight = 0;
  for (int i = 0; i < 2000; ++i) {
    const Graph graph = tests::random_graph(random);
    const Schedule baseline = core::baseline_schedule(graph);
    const std::int64_t peak = reference::peak(graph, baseline);
    const std::int64_t budget = random.between(core::peak_lower_bound(graph), peak);
    core::Stopwatch watch({});
    core::EditableSchedule work(graph);
    work.assign(baseline.steps);
    const bool fits = evict_until_it_fits(graph, work, budget, random.chance(50) ? 0 : 5, watch);
    const Schedule evicted{work.steps()};
    REQUIRE(reference::valid(graph, evicted));
    CHECK(reference::drop_unread(graph, evicted) == evicted);
    CHECK(fits == (reference::peak(graph, evicted) <= budget));
    CHECK(reference::peak(graph, evicted) <= peak);
    fitted += fits && budget < peak;
    tight += budget < peak;
  }
  CHECK(fitted * 2 > tight);
}

}  // namespace
}  // namespace cairn::solvers::refine_test
