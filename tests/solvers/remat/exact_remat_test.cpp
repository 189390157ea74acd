// Compares the exact search with recomputation to searches that share no code with it (tests/reference/reference.h).

#include "cairn/solvers/remat/exact/exact_remat.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/registry.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::exact_remat_test {
namespace {

using core::Graph;
using core::Schedule;
using tests::baseline_peak;
using tests::Random;

/// Checks that the solution is optimal and has the least cost that the reference finds. If the reference finds no
/// schedule, the solution must be infeasible.
void check_answer(const Graph& graph, std::int64_t budget, const Solution& solution) {
  const std::optional<Schedule> cheapest = core::reference::cheapest_within(graph, budget);
  REQUIRE(solution.status == (cheapest ? Status::optimal : Status::infeasible));
  tests::require_measured(graph, solution);
  if (!cheapest) {
    REQUIRE(solution.least_peak == core::reference::least_peak(graph));
    REQUIRE(solution.peak_bound.value == solution.least_peak);
    return;
  }
  REQUIRE(solution.peak <= budget);
  REQUIRE(solution.cost == core::reference::cost(graph, *cheapest));
  REQUIRE(solution.cost_bound.value == solution.cost);
}

TEST_CASE("exact-remat and auto: the cheapest schedule of small graphs, or that there is none") {
  std::int64_t infeasible = 0, recomputing = 0;
  tests::for_each_seed(3000, [&](Random& random) {
    tests::RandomGraphOptions kind = tests::any_graph(random);
    kind.min_nodes = 1;
    kind.max_nodes = kind.several_outputs ? 5 : 6;
    const Graph graph = tests::random_graph(random, kind);
    SolveOptions options{.budget =
                             random.chance(30) ? core::peak_lower_bound(graph) : tests::any_budget(random, graph)};
    const Solution exact = exact_remat(graph, options);
    check_answer(graph, *options.budget, exact);
    check_answer(graph, *options.budget, find_solver("auto").solve(graph, options));
    infeasible += exact.status == Status::infeasible ? 1 : 0;
    recomputing += exact.status == Status::optimal && exact.schedule.length() > graph.node_count() ? 1 : 0;
  });
  CHECK(infeasible > 50);
  CHECK(recomputing > 100);
}

TEST_CASE("exact-remat without a budget: the least peak, and the least cost there") {
  tests::for_each_seed(500, [&](Random& random) {
    const Graph graph = tests::random_graph(random, tests::any_graph(random, {.max_nodes = 5}));
    const Solution solution = exact_remat(graph, {});
    REQUIRE(solution.status == Status::optimal);
    REQUIRE(solution.peak == core::reference::least_peak(graph));
    const auto cheapest = core::reference::cheapest_within(graph, solution.peak);
    REQUIRE(cheapest);
    REQUIRE(solution.cost == core::reference::cost(graph, *cheapest));
  });
}

TEST_CASE("exact-remat: below every working set it still finds the least budget") {
  tests::for_each_seed(300, [&](Random& random) {
    const Graph graph = tests::random_graph(random, {.max_nodes = 5});
    const std::int64_t bound = core::peak_lower_bound(graph);
    if (bound == 0) return;
    SolveOptions options{.budget = random.below(bound)};
    const Solution solution = exact_remat(graph, options);
    REQUIRE(solution.status == Status::infeasible);
    REQUIRE(solution.least_peak == core::reference::least_peak(graph));
    REQUIRE(solution.peak_bound.value == solution.least_peak);
  });
}

TEST_CASE("exact-remat cut short: its bound on the cost holds, and it claims nothing else") {
  tests::for_each_seed(300, [&](Random& random) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 5, .max_nodes = 7});
    SolveOptions options{.budget = random.between(core::reference::least_peak(graph), baseline_peak(graph)),
                         .limit = {.work = random.below(2000)}};
    const Solution solution = exact_remat(graph, options);
    const auto cheapest = core::reference::cheapest_within(graph, *options.budget);
    REQUIRE(cheapest);
    const std::int64_t cost = core::reference::cost(graph, *cheapest);
    REQUIRE(solution.status != Status::infeasible);
    REQUIRE(solution.cost_bound.value <= cost);
    if (solution.status == Status::optimal) REQUIRE(solution.cost == cost);
  });
}

TEST_CASE("exact-remat keeps to its limits where one step can make room in exponentially many ways") {
  // Before z can run, 27 of 55 equal values must be dropped from memory. There are 3.8e15 ways to choose them. So the
  // search must end at its limit on work or on memory, without an answer.
  core::GraphBuilder builder;
  std::vector<core::NodeId> all;
  for (core::NodeId a = 0; a < 55; ++a) all.push_back(builder.add(tests::make_node("", 1)));
  const core::NodeId p = builder.add(tests::make_node("p", 0, all));
  const core::NodeId z = builder.add(tests::make_node("z", 0, {p}));
  builder.node(z).scratch = 27;
  all.push_back(z);
  const core::NodeId f = builder.add(tests::make_node("f", 0, all));
  builder.node(f).keep = true;
  const Graph graph = builder.build();
  SolveOptions options{.budget = 55, .limit = {.work = 100'000}};
  const Solution by_work = exact_remat(graph, options);
  CHECK(by_work.status == Status::not_found);
  CHECK(by_work.timed_out);
  options.limit = {};
  options.memory_bytes = 1 << 20;
  CHECK(exact_remat(graph, options).status == Status::not_found);
}

TEST_CASE("exact-remat refuses graphs of more values than a word has bits, and auto leaves it out") {
  core::GraphBuilder builder;
  for (core::NodeId v = 0; v <= kMostExactRematValues; ++v) {
    builder.add(tests::make_node("", 1, v == 0 ? std::vector<core::NodeId>{} : std::vector<core::NodeId>{v - 1}));
  }
  const Graph graph = builder.build();
  CHECK_THROWS_AS(exact_remat(graph, {}), core::InputError);
  CHECK(find_solver("auto").solve(graph, {}).status == Status::optimal);
}

/// Finds the least cost within the budget by Dijkstra's algorithm. A state is the set of values in memory and the set
/// of nodes that have run. A move runs a node or drops a value. The search gives up beyond `most_states` states.
struct PlainSearch {
  enum class End { found, none, gave_up };
  End end = End::none;
  std::int64_t cost = 0;

  PlainSearch(const Graph& graph, std::int64_t budget, std::size_t most_states) {
    using State = std::pair<std::uint64_t, std::uint64_t>;  // values in memory, and nodes that have run
    struct Hash {
      std::size_t operator()(const State& s) const { return (s.first * 0x9e3779b97f4a7c15ULL + s.second) % 2147483647; }
    };
    std::unordered_map<State, std::int64_t, Hash> known{{{0, 0}, 0}};
    using Entry = std::pair<std::int64_t, State>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    queue.push({0, {0, 0}});
    const auto every = [&](std::uint64_t memory, const auto& values) {
      return std::all_of(values.begin(), values.end(), [&](core::ValueId x) { return (memory >> x & 1) != 0; });
    };
    while (!queue.empty()) {
      const auto [reached, state] = queue.top();
      queue.pop();
      const auto [memory, ran] = state;
      if (known.at(state) < reached) continue;
      std::int64_t bytes = 0;
      bool complete = true;
      for (core::ValueId x = 0; x < graph.value_count(); ++x) {
        const bool there = (memory >> x & 1) != 0;
        bytes += there ? graph.value_size(x) : 0;
        complete = complete && (there || !graph.value_kept(x));
      }
      for (core::NodeId v = 0; v < graph.node_count(); ++v) complete = complete && (ran >> v & 1) != 0;
      if (complete) {
        end = End::found;
        cost = reached;
        return;
      }
      if (known.size() > most_states) {
        end = End::gave_up;
        return;
      }
      const auto move = [&](const State& to, std::int64_t at) {
        const auto [found, is_new] = known.emplace(to, at);
        if (!is_new && found->second <= at) return;
        found->second = at;
        queue.push({at, to});
      };
      for (core::ValueId x = 0; x < graph.value_count(); ++x) {
        if ((memory >> x & 1) != 0) move({memory & ~(std::uint64_t{1} << x), ran}, reached);
      }
      for (core::NodeId v = 0; v < graph.node_count(); ++v) {
        if (!every(memory, graph.inputs(v)) || (graph.pinned(v) && (ran >> v & 1) != 0)) continue;
        std::uint64_t made = 0;
        for (const core::ValueId x : graph.outputs(v)) made |= std::uint64_t{1} << x;
        if ((memory & made) != 0 || bytes + graph.size(v) + graph.scratch(v) > budget) continue;
        move({memory | made, ran | std::uint64_t{1} << v}, reached + graph.cost(v));
      }
    }
  }
};

/// This test takes minutes, so it runs only if it is named. It prints what it measures.
TEST_CASE("auto on 2,000 graphs of 4 to 12 nodes, three budgets each", "[.][small-graphs]") {
  std::vector<double> milliseconds;
  int optimal = 0, infeasible = 0, undecided = 0, not_optimal = 0, not_infeasible = 0, open = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const Graph graph = tests::random_graph(random, tests::any_graph(seed, {.min_nodes = 4, .max_nodes = 12}));
    const std::int64_t least = core::peak_lower_bound(graph), most = baseline_peak(graph);
    for (const std::int64_t budget : {least, least + (most - least) / 3, least + (most - least) * 2 / 3}) {
      core::Stopwatch watch({});
      const Solution solution = find_solver("auto").solve(graph, {.budget = budget, .limit = {.seconds = 10}});
      milliseconds.push_back(watch.seconds() * 1000);
      const PlainSearch plain(graph, budget, 400'000);
      if (plain.end == PlainSearch::End::gave_up) {
        ++undecided;
        open += solution.status != Status::optimal && solution.status != Status::infeasible ? 1 : 0;
      } else if (plain.end == PlainSearch::End::found) {
        ++optimal;
        if (solution.status != Status::optimal || solution.cost != plain.cost) ++not_optimal;
      } else {
        ++infeasible;
        if (solution.status != Status::infeasible) ++not_infeasible;
      }
    }
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  WARN(fmt::format(
      "feasible {} (not optimal {}), infeasible {} (not proved {}), undecided by the plain search {} (open {}); "
      "median {:.3f} ms, 99% {:.3f} ms, most {:.3f} ms",
      optimal, not_optimal, infeasible, not_infeasible, undecided, open, milliseconds[milliseconds.size() / 2],
      milliseconds[milliseconds.size() * 99 / 100], milliseconds.back()));
  CHECK(not_optimal == 0);
  CHECK(not_infeasible == 0);
}

}  // namespace
}  // namespace cairn::solvers::exact_remat_test
