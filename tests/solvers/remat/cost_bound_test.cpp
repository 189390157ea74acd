// Compares the lower bound on the cost with the true optimum, for small random graphs and for graphs whose optimum is
// known.

#include "cairn/solvers/remat/bound/cost_bound.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/solvers/engines/engine.h"
#include "cairn/solvers/remat/bound/stage_prices.h"
#include "cairn/solvers/remat/bound/stage_program.h"
#include "cairn/solvers/remat/exact/exact_remat.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/solvers/no_engine.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::cost_bound_test {
namespace {

using core::Graph;
using core::NodeId;
using core::Schedule;
using core::ValueId;
using tests::baseline_peak;
using tests::no_engine;
using tests::Random;
namespace reference = core::reference;

std::optional<std::int64_t> least_cost(const Graph& graph, std::int64_t budget) {
  const Solution solution = exact_remat(graph, {.budget = budget});
  REQUIRE((solution.status == Status::optimal || solution.status == Status::infeasible));
  return solution.status == Status::optimal ? std::optional(solution.cost) : std::nullopt;
}

/// Returns the least cost of a schedule within the budget, among schedules in which the first runs of the nodes are in
/// input order. Runs a uniform-cost search. A state is the number of nodes that have run, and the values in memory.
std::optional<std::int64_t> least_cost_in_input_order(const Graph& graph, std::int64_t budget) {
  using State = std::tuple<std::int64_t, NodeId, std::uint32_t>;
  std::uint32_t kept = 0;
  for (ValueId x = 0; x < graph.value_count(); ++x) kept |= graph.value_kept(x) ? 1U << x : 0;
  std::set<std::pair<NodeId, std::uint32_t>> seen;
  std::priority_queue<State, std::vector<State>, std::greater<>> queue;
  queue.push({0, 0, 0});
  while (!queue.empty()) {
    const auto [cost, ran, memory] = queue.top();
    queue.pop();
    if (!seen.insert({ran, memory}).second) continue;
    if (ran == graph.node_count() && (memory & kept) == kept) return cost;
    std::int64_t bytes = 0;
    for (ValueId x = 0; x < graph.value_count(); ++x) {
      if ((memory >> x & 1) == 0) continue;
      bytes += graph.value_size(x);
      queue.push({cost, ran, memory & ~(1U << x)});
    }
    for (NodeId place = 0; place <= std::min(ran, graph.node_count() - 1); ++place) {
      const NodeId v = graph.input_order()[static_cast<std::size_t>(place)];
      std::uint32_t inputs = 0, outputs = 0;
      for (const ValueId x : graph.inputs(v)) inputs |= 1U << x;
      for (const ValueId x : graph.outputs(v)) outputs |= 1U << x;
      const bool first = place == ran;
      if ((memory & inputs) != inputs || (memory & outputs) != 0 || (!first && graph.pinned(v))) continue;
      if (bytes + graph.size(v) + graph.scratch(v) > budget) continue;
      queue.push({cost + graph.cost(v), ran + (first ? 1 : 0), memory | outputs});
    }
  }
  return std::nullopt;
}

/// Returns the bound. Checks the intermediate bounds and schedules that cost_bound() reports while it runs.
CostBound checked_bound(const Graph& graph, CostBoundOptions options) {
  std::int64_t last = 0;
  options.raised = [&](std::int64_t bound) {
    REQUIRE(bound > last);
    last = bound;
  };
  options.found = [&](const Schedule& schedule) {
    REQUIRE(reference::valid(graph, schedule));
    REQUIRE(reference::peak(graph, schedule) <= options.budget);
  };
  const CostBound bound = cost_bound(graph, options);
  if (!bound.infeasible) REQUIRE(bound.value == last);
  return bound;
}

Graph small_graph(Random& random, NodeId most_nodes) {
  while (true) {
    const Graph graph = tests::random_graph(random, tests::any_graph(random, {.max_nodes = most_nodes}));
    if (graph.value_count() > 16) continue;
    if (random.chance(20) || core::peak_lower_bound(graph) < baseline_peak(graph)) return graph;
  }
}

struct Counts {
  std::int64_t tight = 0, infeasible = 0, loose = 0;
};

/// Checks that the bound for a random graph and budget never exceeds the optimum. Tries this without and with a known
/// cost, i.e. the cost of a schedule that the caller has already found.
void check_random_graph(Random& random, NodeId most_nodes, OrderRule order, bool engine, Counts& counts) {
  const Graph graph = small_graph(random, most_nodes);
  CostBoundOptions options{.budget = random.between(core::peak_lower_bound(graph) - 1, baseline_peak(graph)),
                           .order = order,
                           .engine = engine};
  const std::optional<std::int64_t> least =
      order == OrderRule::free ? least_cost(graph, options.budget) : least_cost_in_input_order(graph, options.budget);
  CAPTURE(options.budget, least.value_or(-1));
  const CostBound alone = checked_bound(graph, options);
  if (alone.infeasible) REQUIRE_FALSE(least.has_value());
  if (least) REQUIRE(alone.value <= *least);
  counts.infeasible += alone.infeasible ? 1 : 0;
  counts.tight += least == alone.value ? 1 : 0;
  counts.loose += least.has_value() && *least > alone.value ? 1 : 0;
  if (!least) return;
  const std::atomic<std::int64_t> known = *least + random.between(0, 3) * random.between(0, 10);
  options.known_cost = &known;
  const CostBound with_known = checked_bound(graph, options);
  REQUIRE_FALSE(with_known.infeasible);
  REQUIRE(with_known.value <= *least);
  REQUIRE(alone.exhausted);
  REQUIRE((with_known.exhausted || with_known.value == known));
  REQUIRE(with_known.value >= alone.value);
}

/// Returns a chain of forward nodes and their backward nodes. The backward node of v reads the forward nodes v - 1 and
/// v, and the previous backward node.
Graph training_chain(Random& random, NodeId forward) {
  core::GraphBuilder builder;
  for (NodeId v = 0; v < forward; ++v) {
    core::Node node = tests::make_node("", random.between(1, 9), {}, random.between(1, 9));
    if (v > 0) node.inputs = {v - 1};
    builder.add(std::move(node));
  }
  for (NodeId v = forward; v-- > 1;) {
    const auto after = static_cast<NodeId>(builder.node_count() - 1);
    core::Node node = tests::make_node("", random.between(1, 9), {v - 1, v}, 9);
    if (after != v) node.inputs.push_back(after);
    builder.add(std::move(node));
  }
  return builder.build();
}

TEST_CASE("cost bound: the integer program is never above the optimum, nor above the search of the same relaxation",
          "[cost_bound][engines]") {
  if (no_engine()) return;
  std::int64_t recomputing = 0, infeasible = 0;
  tests::for_each_seed(1000, [&](Random& random) {
    const Graph graph = small_graph(random, 8);
    CostBoundOptions options{.engine = false};
    options.budget = random.between(core::peak_lower_bound(graph), baseline_peak(graph));
    const std::optional<std::int64_t> least = least_cost(graph, options.budget);
    const CostBound searched = checked_bound(graph, options);
    REQUIRE(searched.exhausted);
    const std::int64_t known = random.chance(70) && least ? *least + random.between(0, 9) : kUnknownCost;
    const FirstRunStages stages(graph, longest_chain(graph), options.budget, known);
    StagePrices prices(stages);
    core::Stopwatch watch(options.limit);
    const bool priced = known != kUnknownCost && random.chance(70);
    const std::int64_t most_extra =
        priced ? (known - stages.base_cost() + stages.cost_unit() - 1) / stages.cost_unit() - 1 : 0;
    if (priced) {
      prices.ascend(static_cast<double>(most_extra + 1), 50, watch);
      prices.fix();
      REQUIRE(prices.bound() <= (*least - stages.base_cost()) / stages.cost_unit() * prices.one());
    }
    const StageProgram program(stages, priced ? &prices : nullptr, most_extra);
    EngineAnswer answer{.status = EngineStatus::infeasible};
    if (!program.model().infeasible()) answer = solve_milp(program.model(), {});
    CAPTURE(options.budget, known, least.value_or(-1));
    if (answer.status == EngineStatus::infeasible) {
      REQUIRE((!least || *least == known));
      infeasible += known == kUnknownCost ? 1 : 0;
    } else {
      const std::int64_t bound = std::min(program.cost(answer.whole_bound()), known);
      if (least) REQUIRE(bound <= *least);
      if (!searched.infeasible && known == kUnknownCost) REQUIRE(bound <= searched.value);
      recomputing += bound > stages.base_cost() ? 1 : 0;
    }
  });
  CHECK(recomputing > 20);
  CHECK(infeasible > 5);
}

TEST_CASE("cost bound: never above the optimum, infeasible only where it is", "[cost_bound]") {
  Counts counts;
  tests::for_each_seed(3000, [&](Random& random) { check_random_graph(random, 9, OrderRule::free, false, counts); });
  CHECK(counts.tight > 1000);
  CHECK(counts.infeasible > 100);
}

TEST_CASE("cost bound in the input order: never above the optimum of that class", "[cost_bound]") {
  Counts counts;
  tests::for_each_seed(1500, [&](Random& random) { check_random_graph(random, 7, OrderRule::input, false, counts); });
  CHECK(counts.tight > 400);
  CHECK(counts.infeasible > 50);
}

TEST_CASE("cost bound: mostly the optimum of chains with their backward pass", "[cost_bound]") {
  std::int64_t recomputing = 0, tight = 0;
  tests::for_each_seed(150, [&](Random& random) {
    const Graph graph = training_chain(random, static_cast<NodeId>(random.between(3, 6)));
    CostBoundOptions options{.engine = false};
    options.budget = random.between(core::peak_lower_bound(graph), baseline_peak(graph));
    const std::optional<std::int64_t> least = least_cost(graph, options.budget);
    const CostBound bound = checked_bound(graph, options);
    REQUIRE(bound.exhausted);
    if (bound.infeasible) REQUIRE_FALSE(least.has_value());
    if (least) REQUIRE(bound.value <= *least);
    // The bound can be below the optimum, because it does not count the memory that a repeated run itself needs.
    tight += least ? bound.value == *least : bound.infeasible;
    recomputing += least > core::evaluate(graph, core::baseline_schedule(graph)).cost ? 1 : 0;
  });
  CHECK(recomputing > 20);
  CHECK(tight > 130);
}

TEST_CASE("longest chain: a path with the most nodes", "[cost_bound]") {
  core::GraphBuilder builder;
  for (const std::vector<NodeId>& inputs : std::vector<std::vector<NodeId>>{{}, {0}, {0}, {2}, {1, 3}, {0, 4}})
    builder.add(tests::make_node("", 1, inputs));
  REQUIRE(longest_chain(builder.build()) == std::vector<NodeId>{0, 2, 3, 4, 5});
  REQUIRE(longest_chain(core::GraphBuilder().build()).empty());
}

TEST_CASE("cost bound: a value that must make room for a large one is made again", "[cost_bound]") {
  // `a` (10 bytes) is read by b and by the last node. If `a` stays in memory beside b (5 bytes) and c (12 bytes), 27
  // bytes are needed. Within a lower budget, `a` must be made again, at a cost of 7.
  core::GraphBuilder builder;
  builder.add(tests::make_node("a", 10, {}, 7));
  builder.add(tests::make_node("b", 5, {0}, 3));
  builder.add(tests::make_node("c", 12, {1}, 3));
  builder.add(tests::make_node("d", 1, {2}, 3));
  builder.add(tests::make_node("e", 1, {0, 3}, 3));
  const Graph graph = builder.build();
  CostBoundOptions options{.engine = false};
  const auto value_within = [&](std::int64_t budget) {
    options.budget = budget;
    return cost_bound(graph, options).value;
  };
  CHECK(value_within(27) == 19);
  CHECK(value_within(26) == 26);
  CHECK(value_within(17) == 26);
  options.budget = 16;
  CHECK(cost_bound(graph, options).infeasible);
}

}  // namespace
}  // namespace cairn::solvers::cost_bound_test
