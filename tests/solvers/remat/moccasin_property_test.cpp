// Compares MOCCASIN with brute force over all schedules of its two classes, measured as in tests/reference/reference.h.

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/solvers/registry.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/solvers/no_engine.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::moccasin_property_test {
namespace {

using core::Graph;
using core::NodeId;
using core::Schedule;
using tests::no_engine;
using tests::Random;
namespace reference = core::reference;

/// A map from each peak that a schedule of the class has to the least cost of the schedules with this peak.
using CostOfPeak = std::map<std::int64_t, std::int64_t>;

std::optional<std::int64_t> least_cost(const CostOfPeak& all, std::int64_t budget) {
  std::optional<std::int64_t> least;
  for (const auto& [peak, cost] : all) {
    if (peak <= budget) least = std::min(least.value_or(cost), cost);
  }
  return least;
}

void note(const Graph& graph, const Schedule& schedule, CostOfPeak& all) {
  REQUIRE(reference::valid(graph, schedule));
  const std::int64_t cost = reference::cost(graph, schedule);
  const auto [known, is_new] = all.emplace(reference::peak(graph, schedule), cost);
  known->second = std::min(known->second, cost);
}

/// Adds to `all` the peak and cost of every staged schedule with at most c runs per node. In such a schedule, some of
/// the earlier nodes run again, in input order, before each node runs for the first time. `stage` is the place in the
/// input order of the node that runs next for the first time. Before it, only nodes from place `from` on may still run
/// again.
void try_stages(const Graph& graph, std::int32_t c, NodeId stage, NodeId from, std::vector<std::int32_t>& runs,
                Schedule& schedule, CostOfPeak& all) {
  if (stage == graph.node_count()) return note(graph, schedule, all);
  const NodeId last = graph.input_order()[stage];
  schedule.steps.push_back(last);
  ++runs[last];
  try_stages(graph, c, stage + 1, 0, runs, schedule, all);
  --runs[last];
  schedule.steps.pop_back();
  for (NodeId r = from; r < stage; ++r) {
    const NodeId v = graph.input_order()[r];
    if (runs[v] == c || graph.pinned(v)) continue;
    schedule.steps.push_back(v);
    ++runs[v];
    try_stages(graph, c, stage, r + 1, runs, schedule, all);
    --runs[v];
    schedule.steps.pop_back();
  }
}

CostOfPeak all_staged(const Graph& graph, std::int32_t c) {
  CostOfPeak all;
  std::vector<std::int32_t> runs(static_cast<std::size_t>(graph.node_count()), 0);
  Schedule schedule;
  try_stages(graph, c, 0, 0, runs, schedule, all);
  return all;
}

/// Adds to `all` the peak and cost of every valid schedule with at most c runs per node.
void try_all(const Graph& graph, std::int32_t c, std::vector<std::int32_t>& runs, Schedule& schedule, CostOfPeak& all) {
  if (reference::valid(graph, schedule) && std::find(runs.begin(), runs.end(), 0) == runs.end())
    note(graph, schedule, all);
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (runs[v] == (graph.pinned(v) ? 1 : c)) continue;
    const auto& inputs = graph.predecessors(v);
    if (std::any_of(inputs.begin(), inputs.end(), [&](NodeId u) { return runs[u] == 0; })) continue;
    schedule.steps.push_back(v);
    ++runs[v];
    try_all(graph, c, runs, schedule, all);
    --runs[v];
    schedule.steps.pop_back();
  }
}

/// Returns the least cost within the budget of any schedule with at most c runs per node, by Dijkstra's algorithm. A
/// state is the set of values in memory, and how often each node has run. A move runs a node or drops a value.
std::optional<std::int64_t> search_all(const Graph& graph, std::int32_t c, std::int64_t budget) {
  struct State {
    std::uint64_t memory = 0;
    std::vector<std::int32_t> runs;
    auto operator<=>(const State&) const = default;
  };
  const State start{0, std::vector<std::int32_t>(static_cast<std::size_t>(graph.node_count()), 0)};
  std::map<State, std::int64_t> known{{start, 0}};
  using Entry = std::pair<std::int64_t, State>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  queue.push({0, start});
  while (!queue.empty()) {
    const auto [cost, state] = queue.top();
    queue.pop();
    if (known.at(state) < cost) continue;
    std::int64_t bytes = 0;
    bool complete = std::find(state.runs.begin(), state.runs.end(), 0) == state.runs.end();
    for (core::ValueId x = 0; x < graph.value_count(); ++x) {
      const bool there = (state.memory >> x & 1) != 0;
      bytes += there ? graph.value_size(x) : 0;
      complete = complete && (there || !graph.value_kept(x));
    }
    if (complete) return cost;
    const auto move = [&](State to, std::int64_t at) {
      const auto [found, is_new] = known.emplace(to, at);
      if (!is_new && found->second <= at) return;
      found->second = at;
      queue.push({at, std::move(to)});
    };
    for (core::ValueId x = 0; x < graph.value_count(); ++x) {
      State to = state;
      to.memory &= ~(std::uint64_t{1} << x);
      if (to.memory != state.memory) move(std::move(to), cost);
    }
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      if (state.runs[v] == (graph.pinned(v) ? 1 : c)) continue;
      State to = state;
      bool runnable = bytes + graph.size(v) + graph.scratch(v) <= budget;
      for (const core::ValueId x : graph.inputs(v)) runnable = runnable && (state.memory >> x & 1) != 0;
      for (const core::ValueId x : graph.outputs(v)) {
        runnable = runnable && (state.memory >> x & 1) == 0;
        to.memory |= std::uint64_t{1} << x;
      }
      if (!runnable) continue;
      ++to.runs[v];
      move(std::move(to), cost + graph.cost(v));
    }
  }
  return std::nullopt;
}

SolveOptions options_of(std::int32_t c, bool staged, std::optional<std::int64_t> budget) {
  return {.budget = budget, .own = {{"c", c}, {"staged", staged ? 1 : 0}, {"threads", 1}}};
}

/// Solves the problem, and compares all claims of the answer with the least cost of the class, `least`.
Solution solve_and_check(const Graph& graph, const SolveOptions& options, std::optional<std::int64_t> least) {
  const Solution solution = find_solver("moccasin").solve(graph, options);
  REQUIRE(solution.status == (least ? Status::optimal : Status::infeasible));
  tests::require_measured(graph, solution);
  REQUIRE(solution.scope.contains(graph, solution.schedule));
  if (least) {
    REQUIRE(solution.peak <= *options.budget);
    REQUIRE(solution.cost == *least);
  }
  return solution;
}

std::int64_t some_budget(Random& random, const Graph& graph) {
  return random.chance(20) ? core::peak_lower_bound(graph) : tests::any_budget(random, graph);
}

Graph small_graph(Random& random, NodeId most) {
  return tests::random_graph(random, tests::any_graph(random, {.min_nodes = 1, .max_nodes = most}));
}

TEST_CASE("moccasin in stages: the cheapest of all such schedules, or that there is none", "[moccasin]") {
  if (no_engine()) return;
  int infeasible = 0, recomputing = 0;
  tests::for_each_seed(4000, [&](Random& random) {
    const auto c = static_cast<std::int32_t>(random.between(1, 3));
    const Graph graph = small_graph(random, c == 3 ? 5 : 6);
    const CostOfPeak all = all_staged(graph, c);
    for (int k = 0; k < 2; ++k) {
      const std::int64_t budget = k == 0 ? some_budget(random, graph) : all.begin()->first + random.below(2) - 1;
      SolveOptions options = options_of(c, true, budget);
      // The option `staged` asks for the class of staged schedules. Each of the following two scopes also asks for this
      // class.
      if (random.chance(30)) options.scope = {OrderRule::input, c};
      if (random.chance(30)) options.scope = {OrderRule::stages, 0};
      const Solution solution = solve_and_check(graph, options, least_cost(all, budget));
      REQUIRE(solution.scope == Scope{OrderRule::stages, c});
      if (solution.status == Status::infeasible && budget >= core::peak_lower_bound(graph))
        REQUIRE(solution.least_peak == all.begin()->first);
      infeasible += solution.status == Status::infeasible;
      recomputing += solution.status == Status::optimal && solution.schedule.length() > graph.node_count();
    }
  });
  CHECK(infeasible > 50);
  CHECK(recomputing > 100);
}

TEST_CASE("the search over sets of values finds what trying all schedules finds", "[moccasin]") {
  tests::for_each_seed(300, [&](Random& random) {
    const Graph graph = small_graph(random, 3);
    const auto c = static_cast<std::int32_t>(random.between(1, 2));
    CostOfPeak all;
    std::vector<std::int32_t> runs(static_cast<std::size_t>(graph.node_count()), 0);
    Schedule schedule;
    try_all(graph, c, runs, schedule, all);
    for (int k = 0; k < 3; ++k) {
      const std::int64_t budget = some_budget(random, graph) - (k == 2 ? 1 : 0);
      REQUIRE(search_all(graph, c, budget) == least_cost(all, budget));
    }
  });
}

TEST_CASE("moccasin in any order: the cheapest of at most C runs a node, or that there is none", "[moccasin]") {
  if (no_engine()) return;
  int infeasible = 0, recomputing = 0;
  tests::for_each_seed(1200, [&](Random& random) {
    const auto c = static_cast<std::int32_t>(random.between(1, 3));
    const Graph graph = small_graph(random, c == 3 ? 4 : 5);
    for (int k = 0; k < 2; ++k) {
      const std::int64_t budget = some_budget(random, graph);
      SolveOptions options = options_of(c, false, budget);
      if (random.chance(30)) {
        options.own["c"] = 9;
        options.scope.max_occurrences = c;
      }
      const Solution solution = solve_and_check(graph, options, search_all(graph, c, budget));
      REQUIRE(solution.scope == Scope{OrderRule::free, c});
      infeasible += solution.status == Status::infeasible;
      recomputing += solution.status == Status::optimal && solution.schedule.length() > graph.node_count();
    }
  });
  CHECK(infeasible > 50);
  CHECK(recomputing > 50);
}

TEST_CASE("moccasin in any order with C large enough: the cheapest schedule of all", "[moccasin]") {
  if (no_engine()) return;
  int recomputing = 0;
  tests::for_each_seed(500, [&](Random& random) {
    const Graph graph = small_graph(random, 5);
    const std::int64_t budget = some_budget(random, graph);
    const auto cheapest = reference::cheapest_within(graph, budget);
    std::optional<std::int64_t> cost;
    if (cheapest) cost = reference::cost(graph, *cheapest);
    // For all of these graphs, which have at most five nodes, more than four runs of a node cannot lower the cost.
    const Solution solution = solve_and_check(graph, options_of(4, false, budget), cost);
    recomputing += solution.status == Status::optimal && solution.schedule.length() > graph.node_count();
    REQUIRE(find_solver("exact-remat").solve(graph, {.budget = budget}).status == solution.status);
  });
  CHECK(recomputing > 10);
}

TEST_CASE("moccasin without a budget: the least peak of its class, then the least cost at it", "[moccasin]") {
  if (no_engine()) return;
  tests::for_each_seed(500, [&](Random& random) {
    const Graph graph = small_graph(random, 5);
    const auto c = static_cast<std::int32_t>(random.between(1, 3));
    const CostOfPeak all = all_staged(graph, c);
    const Solution solution = find_solver("moccasin").solve(graph, options_of(c, true, {}));
    REQUIRE(solution.status == Status::optimal);
    REQUIRE(solution.peak == all.begin()->first);
    REQUIRE(solution.cost == all.begin()->second);
  });
}

/// Returns a chain f0 -> ... -> f6 and its backward pass b6, ..., b0. Each backward node reads the previous node of the
/// order and its own forward node. All sizes and costs are 1.
Graph training_chain() {
  core::GraphBuilder builder;
  for (NodeId v = 0; v < 7; ++v)
    builder.add(tests::make_node("", 1, v == 0 ? std::vector<NodeId>{} : std::vector<NodeId>{v - 1}));
  for (NodeId v = 6; v >= 0; --v) builder.add(tests::make_node("", 1, {static_cast<NodeId>(12 - v), v}));
  builder.node(13).keep = true;
  return builder.build();
}

TEST_CASE("moccasin: a chain whose forward nodes run more often the less memory there is", "[moccasin]") {
  if (no_engine()) return;
  const Graph graph = training_chain();
  std::int64_t before = tests::baseline_peak(graph);
  for (const std::int32_t c : {2, 3}) {
    const Solution solution = find_solver("moccasin").solve(graph, options_of(c, true, {}));
    CHECK(solution.status == Status::optimal);
    CHECK(solution.peak < before);
    const auto& steps = solution.schedule.steps;
    std::int64_t most = 0;
    for (const NodeId v : steps) most = std::max<std::int64_t>(most, std::count(steps.begin(), steps.end(), v));
    CHECK(most == c);
    before = solution.peak;
    SolveOptions options = options_of(c, true, solution.peak - 1);
    CHECK(find_solver("moccasin").solve(graph, options).status == Status::infeasible);
    options.budget = solution.peak;
    CHECK(find_solver("moccasin").solve(graph, options).cost == solution.cost);
  }
}

TEST_CASE("moccasin keeps to limits, and gives the same for the same seed and work", "[moccasin]") {
  if (no_engine()) return;
  Random random(5);
  const Graph graph = tests::random_graph(random, {.min_nodes = 40, .max_nodes = 40});
  SolveOptions options{.budget = core::peak_lower_bound(graph)};
  const std::atomic<bool> stop = true;
  for (const core::Limit& limit : {core::Limit{.seconds = 0}, core::Limit{.stop = &stop}}) {
    options.limit = limit;
    const Solution stopped = find_solver("moccasin").solve(graph, options);
    CHECK(stopped.timed_out);
    CHECK(stopped.peak == tests::baseline_peak(graph));
  }
  options.limit = {.work = 3'000'000};
  const Solution solution = find_solver("moccasin").solve(graph, options);
  const Solution again = find_solver("moccasin").solve(graph, options);
  CHECK(again.schedule == solution.schedule);
  CHECK(again.work == solution.work);
  CHECK(again.peak_bound.value == solution.peak_bound.value);
}

TEST_CASE("moccasin refuses what it cannot do in one line", "[moccasin]") {
  if (no_engine()) return;
  const SolverInfo& info = find_solver("moccasin");
  SolveOptions options;
  CHECK_THROWS_WITH(info.set_option(options, "c=0"),
                    "option 'c' of solver 'moccasin' is '0', but must be a whole number from 1 to 1000 (runs)");
  core::GraphBuilder builder;
  for (NodeId v = 0; v < 3000; ++v) {
    builder.add(tests::make_node("", 1, v == 0 ? std::vector<NodeId>{} : std::vector<NodeId>{v - 1}));
  }
  builder.node(0).keep = true;
  options.budget = 2;
  options.own["c"] = 1000;
  tests::check_says(tests::error_of([&] { info.solve(builder.build(), options); }), {"'moccasin'", "c=1000"});
  CHECK(info.solve(Graph(), {}).status == Status::optimal);
}

}  // namespace
}  // namespace cairn::solvers::moccasin_property_test
