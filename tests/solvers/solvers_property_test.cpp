// Tests all registered solvers on random graphs. The answers are compared with the literal definitions and the
// brute-force searches of tests/reference/reference.h.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "cairn/core/profile.h"
#include "cairn/solvers/registry.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/solvers/no_engine.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::solvers_property_test {
namespace {

using core::Graph;
using solvers::Solution;
using solvers::SolveOptions;
using solvers::Status;
namespace reference = core::reference;

/// Returns options whose limit is in units of work, not in seconds, so that the answers are the same on every machine.
SolveOptions options_for(std::optional<std::int64_t> budget, std::int64_t work = 20'000) {
  return {.budget = budget, .limit = {.work = work}};
}

/// Returns the solvers that accept random graphs and may recompute. Solvers that only order nodes and solvers of
/// training graphs have tests of their own (for example order_property_test.cpp). Solvers whose engines are not
/// installed are left out.
std::vector<solvers::SolverInfo> remat_solvers() {
  std::vector<solvers::SolverInfo> found;
  for (const auto& solver : solvers::registry()) {
    const bool takes_any = solver.graphs == "any" || solver.most_values > 0;
    if (solver.scope == solvers::kAnySchedule && takes_any && solver.why_missing().empty()) found.push_back(solver);
  }
  return found;
}
/// Returns the solvers that accept every graph. Solvers whose engines are not installed are left out.
std::vector<solvers::SolverInfo> general_solvers() {
  std::vector<solvers::SolverInfo> found;
  for (const auto& solver : solvers::registry()) {
    if (solver.graphs == "any" && solver.why_missing().empty()) found.push_back(solver);
  }
  return found;
}

/// This test counts as skipped if the other tests of this file leave solvers out.
TEST_CASE("no solver lacks its engine") {
  if (tests::no_engine()) return;
  for (const auto& solver : solvers::registry()) CHECK(solver.why_missing().empty());
}

void check_solution(const Graph& graph, const Solution& solution, const SolveOptions& options) {
  REQUIRE_FALSE(solution.schedule.steps.empty());
  tests::require_measured(graph, solution);
  CHECK(reference::drop_unread(graph, solution.schedule) == solution.schedule);
  CHECK(solution.peak_bound.value >= reference::peak_lower_bound(graph));
  CHECK(solution.least_peak <= solution.peak);
  std::int64_t cost = solution.cost;
  for (const core::Schedule& other : solution.others) {
    REQUIRE(reference::valid(graph, other));
    CHECK(reference::peak(graph, other) <= options.budget.value());
    CHECK(reference::cost(graph, other) >= cost);
    cost = reference::cost(graph, other);
  }
  CHECK(solution.least_peak >= solution.peak_bound.value);
  // Some tradeoff must be at least as good as the schedule in both peak and cost, and no tradeoff may be dominated by
  // another tradeoff.
  for (std::size_t i = 0; i + 1 < solution.tradeoffs.size(); ++i) {
    CHECK(solution.tradeoffs[i].peak < solution.tradeoffs[i + 1].peak);
    CHECK(solution.tradeoffs[i].cost > solution.tradeoffs[i + 1].cost);
  }
  CHECK(std::any_of(solution.tradeoffs.begin(), solution.tradeoffs.end(), [&](const solvers::Tradeoff& tradeoff) {
    return tradeoff.peak <= solution.peak && tradeoff.cost <= solution.cost;
  }));
  CHECK(solution.tradeoffs.front().peak == solution.least_peak);
  const bool fits = !options.budget || solution.peak <= *options.budget;
  CHECK(fits == (solution.status == Status::optimal || solution.status == Status::feasible));
  if (options.budget) CHECK((solution.status == Status::infeasible) == (*options.budget < solution.peak_bound.value));
}

TEST_CASE("every solver returns valid schedules whose measures are the reference's") {
  tests::Random random(1);
  for (int i = 0; i < 400; ++i) {
    const Graph graph = tests::random_graph(random);
    const std::int64_t baseline = reference::peak(graph, core::baseline_schedule(graph));
    const std::int64_t bound = reference::peak_lower_bound(graph);
    for (const auto& solver : remat_solvers()) {
      for (const auto budget : {std::optional<std::int64_t>(), std::optional(baseline), std::optional(bound),
                                std::optional((bound + baseline) / 2), std::optional(bound - 1)}) {
        INFO("graph " << i << " solver " << std::string(solver.name) << " budget " << budget.value_or(-1));
        const SolveOptions options = options_for(budget);
        check_solution(graph, solver.solve(graph, options), options);
      }
    }
  }
}

TEST_CASE("what is called optimal is, and what is called infeasible is, by brute force") {
  tests::Random random(2);
  tests::RandomGraphOptions small{.max_nodes = 6};
  int optimal = 0, infeasible = 0, found = 0, cheapest = 0;
  for (int i = 0; i < 400; ++i) {
    const Graph graph = tests::random_graph(random, small);
    const std::int64_t bound = reference::peak_lower_bound(graph);
    const std::int64_t baseline = reference::peak(graph, core::baseline_schedule(graph));
    const std::int64_t budget = random.between(bound - 1, baseline);
    const auto best = reference::cheapest_within(graph, budget);
    for (const auto& solver : remat_solvers()) {
      INFO("graph " << i << " solver " << std::string(solver.name) << " budget " << budget);
      const Solution solution = solver.solve(graph, options_for(budget));
      if (solution.status == Status::infeasible) {
        ++infeasible;
        CHECK_FALSE(best.has_value());
      }
      if (solution.status == Status::optimal) {
        ++optimal;
        REQUIRE(best.has_value());
        CHECK(solution.cost == reference::cost(graph, *best));
      }
      if (solution.status == Status::feasible) {
        REQUIRE(best.has_value());
        CHECK(solution.cost >= reference::cost(graph, *best));
      }
      if (solver.name == "auto" && best) {
        ++found;
        cheapest += (solution.status == Status::optimal || solution.status == Status::feasible) &&
                    solution.cost == reference::cost(graph, *best);
      }
    }
  }
  CHECK(optimal > 0);
  CHECK(infeasible > 0);
  // Local search promises no optimum. But on such small graphs, it should find the cheapest schedule in most cases.
  INFO(cheapest << " of " << found << " cheapest");
  CHECK(cheapest * 100 >= found * 85);
}

TEST_CASE("the same seed and work limit give the same schedule") {
  tests::Random random(3);
  for (int i = 0; i < 20; ++i) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 30, .max_nodes = 40});
    const std::int64_t baseline = tests::baseline_peak(graph);
    for (const auto& solver : general_solvers()) {
      SolveOptions options = options_for(baseline * 7 / 10);
      options.seed = 7;
      const Solution first = solver.solve(graph, options);
      for (int repeat = 0; repeat < 4; ++repeat) CHECK(solver.solve(graph, options).schedule == first.schedule);
    }
  }
}

TEST_CASE("a raised stop flag ends every solver with a valid schedule") {
  tests::Random random(4);
  const Graph graph = tests::random_graph(random);
  std::atomic<bool> stop = true;
  for (const auto& solver : remat_solvers()) {
    SolveOptions options{.budget = core::peak_lower_bound(graph), .limit = {.stop = &stop}};
    check_solution(graph, solver.solve(graph, options), options);
  }
}

TEST_CASE("solvers accept graphs without nodes, without edges, and of one node") {
  core::GraphBuilder single;
  single.add({.name = "a", .size = 8, .cost = 1});
  core::GraphBuilder loose;
  for (int i = 0; i < 3; ++i) loose.add({.name = fmt::format("n{}", i), .size = i});
  for (const Graph& graph : {Graph(), single.build(), loose.build()}) {
    for (const auto& solver : general_solvers()) {
      for (const auto budget : {std::optional<std::int64_t>(), std::optional<std::int64_t>(8)}) {
        const Solution solution = solver.solve(graph, options_for(budget));
        CHECK(solution.status == Status::optimal);
        CHECK(solution.schedule.length() == graph.node_count());
      }
    }
  }
}

TEST_CASE("the graph of Kumar et al., Figure 1: four units, or three with one recomputation") {
  // The edges are A -> B, B -> C, B -> D, C -> D, A -> E and D -> E. All sizes and costs are 1.
  using tests::make_node;
  const Graph graph = tests::build_graph({make_node("A", 1), make_node("B", 1, {0}), make_node("C", 1, {1}),
                                          make_node("D", 1, {1, 2}), make_node("E", 1, {0, 3})});
  CHECK(solvers::find_solver("none").solve(graph, {}).peak == 4);
  SolveOptions options{.budget = 3};
  for (const auto* name : {"auto", "greedy", "tw"}) {
    const Solution solution = solvers::find_solver(name).solve(graph, options);
    CHECK(solution.schedule.steps == std::vector<core::NodeId>{0, 1, 2, 3, 0, 4});
    CHECK(solution.peak == 3);
    CHECK(solution.cost == 6);
  }
  options.budget = 2;
  CHECK(solvers::find_solver("auto").solve(graph, options).status == Status::infeasible);
}

TEST_CASE("an unknown solver is answered with the nearest name") {
  CHECK(tests::contains(tests::error_of([] { solvers::find_solver("greddy"); }), "greedy"));
}

}  // namespace
}  // namespace cairn::solvers_property_test
