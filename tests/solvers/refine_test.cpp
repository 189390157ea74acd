#include "cairn/solvers/remat/internal/refine.h"

#include "cairn/core/profile.h"
#include "cairn/core/reference.h"
#include "cairn/solvers/remat/internal/max_tree.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::solvers {
namespace {

using core::Graph;
using core::Schedule;
namespace reference = core::reference;

TEST_CASE("the range maximum tree agrees with a plain array") {
  tests::Random random(1);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::int64_t> plain(random.between(1, 40));
    for (auto& value : plain) value = random.between(-50, 50);
    MaxTree tree(plain);
    for (int op = 0; op < 60; ++op) {
      const auto first = random.below(static_cast<std::int64_t>(plain.size()));
      const auto last = random.between(first - 1, static_cast<std::int64_t>(plain.size()) - 1);
      if (random.chance(50)) {
        const std::int64_t value = random.between(-20, 20);
        tree.add(first, last, value);
        for (std::int64_t k = first; k <= last; ++k) plain[k] += value;
      } else if (first <= last) {
        CHECK(tree.max(first, last) == *std::max_element(plain.begin() + first, plain.begin() + last + 1));
      }
    }
  }
}

TEST_CASE("retaining keeps schedules valid and within the budget, and never costs more") {
  tests::Random random(2);
  int removed = 0;
  for (int i = 0; i < 4000; ++i) {
    const Graph graph = tests::random_graph(random);
    const Schedule schedule = tests::random_schedule(random, graph);
    const std::int64_t before = reference::peak(graph, schedule);
    const std::int64_t budget = random.between(core::peak_lower_bound(graph), before + before / 4 + 1);
    const Schedule retained = retain_where_it_fits(graph, schedule, budget, random.chance(50) ? 0 : 17);
    REQUIRE(reference::valid(graph, retained));
    CHECK(reference::cost(graph, retained) <= reference::cost(graph, schedule));
    CHECK(reference::peak(graph, retained) <= std::max(before, budget));
    removed += reference::recomputed(retained) < reference::recomputed(reference::drop_unread(graph, schedule));
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
    CHECK(reference::recomputed(retain_where_it_fits(graph, schedule, everything)) == 0);
  }
}

TEST_CASE("a long chain of values that become unread is taken out without recursion") {
  constexpr core::NodeId kNodes = 200'000;
  core::GraphBuilder builder;
  for (core::NodeId v = 0; v < kNodes; ++v) {
    core::Node node;
    node.size = 1;
    if (v > 0) node.inputs.push_back(v - 1);
    builder.add(std::move(node));
  }
  const Graph graph = builder.build();
  // The chain but for its last node runs twice, the second time for the last node.
  Schedule schedule = core::baseline_schedule(graph);
  schedule.steps.pop_back();
  const std::vector<core::NodeId> once = schedule.steps;
  schedule.steps.insert(schedule.steps.end(), once.begin(), once.end());
  schedule.steps.push_back(kNodes - 1);
  CHECK(retain_where_it_fits(graph, schedule, 10).length() == kNodes);
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
    const Eviction eviction = evict_until_it_fits(graph, baseline, budget, random.chance(50) ? 0 : 5, watch);
    REQUIRE(reference::valid(graph, eviction.schedule));
    CHECK(eviction.fits == (reference::peak(graph, eviction.schedule) <= budget));
    CHECK(reference::peak(graph, eviction.schedule) <= peak);
    fitted += eviction.fits && budget < peak;
    tight += budget < peak;
  }
  CHECK(fitted * 2 > tight);
}

}  // namespace
}  // namespace cairn::solvers
