// Compares the search over live sets (sets of values in memory) with a simple search that shares no code with it. Also
// compares windows, i.e. problems that are cut out of a schedule, with the definitions.

#include "cairn/solvers/remat/exact/window.h"

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/remat/exact/exact_remat.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::window_test {
namespace {

using core::Graph;
using core::NodeId;
using core::Schedule;
using tests::Random;

constexpr std::int64_t kManyStates = 1'000'000;
constexpr std::int64_t kMemory = std::int64_t{1} << 30;

template <class Set>
std::set<std::int32_t> numbers(Set set) {
  std::set<std::int32_t> result;
  for (std::int32_t i = 0; i < kMostInSet<Set>; ++i) {
    if ((set >> i & 1) != 0) result.insert(i);
  }
  return result;
}

/// Returns the least cost of a solution, by Dijkstra's algorithm. A state is the set of values in memory and the set of
/// nodes that have run. A move drops a value or runs a node.
template <class Set>
std::optional<std::int64_t> least_cost(const LiveSetProblem<Set>& problem, std::int64_t budget) {
  using Numbers = std::set<std::int32_t>;
  using State = std::pair<Numbers, Numbers>;
  const auto contains = [](const Numbers& all, const Numbers& some) {
    return std::includes(all.begin(), all.end(), some.begin(), some.end());
  };
  const Numbers goals = numbers(problem.goals), once = numbers(problem.once), target = numbers(problem.target);
  const Numbers chain = numbers(problem.in_order);
  std::set<std::pair<std::int64_t, State>> queue{{0, {numbers(problem.start), {}}}};
  std::set<State> closed;
  while (!queue.empty()) {
    const auto [cost, state] = *queue.begin();
    queue.erase(queue.begin());
    if (!closed.insert(state).second) continue;
    const auto& [memory, ran] = state;
    if (contains(memory, target) && contains(ran, goals)) return cost;
    std::int64_t bytes = 0;
    for (const std::int32_t x : memory) {
      bytes += problem.sizes[x];
      State dropped = state;
      dropped.first.erase(x);
      queue.insert({cost, dropped});
    }
    for (std::int32_t v = 0; v < static_cast<std::int32_t>(problem.nodes.size()); ++v) {
      const auto& node = problem.nodes[v];
      const Numbers outputs = numbers(node.outputs);
      const bool none_there = std::none_of(outputs.begin(), outputs.end(), [&](auto x) { return memory.contains(x); });
      if (!none_there || !contains(memory, numbers(node.inputs)) || bytes + node.during > budget) continue;
      if (once.contains(v) && ran.contains(v)) continue;
      const bool in_turn = std::all_of(chain.begin(), chain.end(), [&](auto w) { return w >= v || ran.contains(w); });
      if (chain.contains(v) && !in_turn) continue;
      State after = state;
      after.first.insert(outputs.begin(), outputs.end());
      if (goals.contains(v) || once.contains(v)) after.second.insert(v);
      queue.insert({cost + node.cost, after});
    }
  }
  return std::nullopt;
}

/// Returns whether the steps solve the problem within the budget if each value stays in memory until its last read.
template <class Set>
bool solves(const LiveSetProblem<Set>& problem, std::int64_t budget, const std::vector<std::int32_t>& steps) {
  std::set<std::int32_t> memory = numbers(problem.start), ran;
  std::int32_t last_in_order = -1;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::int32_t v = steps[i];
    // These values stay in memory: values that this step or a later step reads before they are made again, and values
    // in the target.
    std::set<std::int32_t> live;
    for (const std::int32_t x : memory) {
      bool wanted = numbers(problem.target).contains(x);
      for (std::size_t j = i; j < steps.size(); ++j) {
        const auto& node = problem.nodes[steps[j]];
        if (numbers(node.inputs).contains(x)) wanted = true;
        if (numbers(node.inputs).contains(x)) break;
        if (numbers(node.outputs).contains(x)) wanted = false;
        if (numbers(node.outputs).contains(x)) break;
      }
      if (wanted) live.insert(x);
    }
    std::int64_t bytes = problem.nodes[v].during;
    for (const std::int32_t x : live) bytes += problem.sizes[x];
    for (const std::int32_t x : numbers(problem.nodes[v].inputs)) {
      if (!live.contains(x)) return false;
    }
    if (bytes > budget) return false;
    const bool new_one = ran.insert(v).second;
    if (!new_one && numbers(problem.once).contains(v)) return false;
    if (new_one && numbers(problem.in_order).contains(v)) {
      if (v < last_in_order) return false;
      last_in_order = v;
    }
    memory = live;
    for (const std::int32_t x : numbers(problem.nodes[v].outputs)) memory.insert(x);
  }
  for (const std::int32_t x : numbers(problem.target)) {
    if (!memory.contains(x)) return false;
  }
  for (const std::int32_t v : numbers(problem.goals)) {
    if (!ran.contains(v)) return false;
  }
  return true;
}

/// Returns a random problem with a few nodes and values. Some of the values are made by no node. The start and the
/// target are random sets of values.
template <class Set>
LiveSetProblem<Set> random_problem(Random& random) {
  LiveSetProblem<Set> problem;
  const auto nodes = static_cast<std::int32_t>(random.between(1, 6));
  const auto values = static_cast<std::int32_t>(random.between(1, 7));
  const std::int64_t most = random.pick(std::vector<std::int64_t>{1, 3, 20});
  for (std::int32_t x = 0; x < values; ++x) problem.sizes.push_back(random.between(0, most));
  std::sort(problem.sizes.rbegin(), problem.sizes.rend());
  for (std::int32_t v = 0; v < nodes; ++v) {
    typename LiveSetProblem<Set>::Node node;
    node.during = random.chance(30) ? random.between(0, most) : 0;
    node.cost = random.between(0, 5);
    problem.nodes.push_back(node);
  }
  for (std::int32_t x = 0; x < values; ++x) {
    const auto v = static_cast<std::int32_t>(random.between(-1, nodes - 1));
    problem.producers.push_back(v);
    if (random.chance(v < 0 ? 80 : 40)) problem.start |= single<Set>(x);
    if (random.chance(30)) problem.target |= single<Set>(x);
    if (v >= 0) {
      problem.nodes[v].outputs |= single<Set>(x);
      problem.nodes[v].during += problem.sizes[x];
    }
    for (std::int32_t w = v + 1; w < nodes; ++w) {
      if (random.chance(40)) problem.nodes[w].inputs |= single<Set>(x);
    }
  }
  for (std::int32_t v = 0; v < nodes; ++v) {
    if (random.chance(25)) problem.goals |= single<Set>(v);
    if (random.chance(25)) problem.once |= single<Set>(v);
  }
  if (random.chance(50)) problem.in_order = problem.goals;
  if (random.chance(30)) problem.in_order &= static_cast<Set>(random.below(1 << nodes));
  return problem;
}

template <class Set>
void check_search(Random& random, LiveSetSearch<Set>& search, int& found) {
  const LiveSetProblem<Set> problem = random_problem<Set>(random);
  std::int64_t all = 0;
  for (const std::int64_t size : problem.sizes) all += size;
  LiveSetLimits limits{.budget = random.between(all / 3, all), .seed = random.chance(50) ? 1U : 0U};
  const std::optional<std::int64_t> least = least_cost(problem, limits.budget);
  limits.anytime = random.chance(50);
  if (random.chance(50)) limits.most_cost = least.value_or(0) + random.between(-2, 4);
  core::Stopwatch watch({});
  const auto result = search.run(problem, limits, watch);
  if (!least || *least > limits.most_cost) {
    REQUIRE(result.proved);
    REQUIRE(!result.found);
    REQUIRE(result.cost_bound > limits.most_cost - (limits.most_cost == kAnyCost ? 1 : 0));
    return;
  }
  REQUIRE(result.proved);
  REQUIRE(result.found);
  REQUIRE(result.cost == *least);
  REQUIRE(result.cost_bound == *least);
  std::int64_t cost = 0;
  for (const std::int32_t v : result.steps) cost += problem.nodes[v].cost;
  REQUIRE(cost == *least);
  REQUIRE(solves(problem, limits.budget, result.steps));
  ++found;
  limits.free_of_cost = true;
  limits.most_cost = kAnyCost;
  const auto any = search.run(problem, limits, watch);
  REQUIRE(any.found);
  REQUIRE(solves(problem, limits.budget, any.steps));
}

TEST_CASE("search over live sets: the least cost that a plain search finds, from any live set to any other") {
  LiveSetSearch<Set64> small;
  LiveSetSearch<Set128> large;
  int found = 0;
  tests::for_each_seed(3000, [&](Random& random) {
    if (random.chance(50)) return check_search(random, small, found);
    check_search(random, large, found);
  });
  CHECK(found > 500);
}

/// Returns a valid schedule of the scope. It may recompute, but each of its steps is needed.
Schedule schedule_of_scope(Random& random, const Graph& graph, const Scope& scope) {
  for (int tries = 0; tries < 10; ++tries) {
    Schedule schedule = tests::random_schedule(random, graph);
    if (scope.order == OrderRule::input) {
      // Takes the input order, and inserts further runs of random nodes at random places after their first run.
      std::vector<NodeId> steps(graph.input_order().begin(), graph.input_order().end());
      for (std::int64_t k = random.below(graph.node_count() + 1); k > 0; --k) {
        const auto i = random.place(steps);
        if (graph.pinned(steps[i])) continue;
        const auto place = static_cast<std::ptrdiff_t>(
            random.between(static_cast<std::int64_t>(i) + 1, static_cast<std::int64_t>(steps.size())));
        steps.insert(steps.begin() + place, steps[i]);
      }
      schedule.steps = steps;
    }
    schedule = core::drop_unread(graph, schedule);
    if (scope.contains(graph, schedule)) return schedule;
  }
  return core::baseline_schedule(graph);
}

TEST_CASE("windows: valid, within the budget and the scope, never costlier, and what is said of them is true") {
  int improved = 0, moved = 0, lowered = 0;
  tests::for_each_seed(4000, [&](Random& random) {
    const Graph graph = tests::random_graph(random, tests::any_graph(random, {.max_nodes = 12}));
    Scope scope{random.chance(50) ? OrderRule::free : OrderRule::input,
                static_cast<std::int32_t>(random.pick(std::vector<std::int64_t>{0, 0, 1, 2, 3}))};
    Schedule schedule = schedule_of_scope(random, graph, scope);
    const core::Evaluation first = core::evaluate(graph, schedule);
    const bool too_high = random.chance(20);
    const std::int64_t budget = too_high ? random.between(core::peak_lower_bound(graph), first.peak) : first.peak;
    WindowSearch windows(graph, scope, budget, static_cast<std::uint64_t>(random.below(1000)), kMemory);
    core::Stopwatch watch({});
    for (int k = 0; k < 8; ++k) {
      const core::Evaluation before = core::evaluate(graph, schedule);
      const std::vector<std::int64_t> profile = core::Evaluator(graph).profile(schedule.steps);
      const std::vector<NodeId> old = schedule.steps;
      WindowSearch::Outcome outcome;
      std::int64_t window_peak = 0;
      if (random.chance(50)) {
        outcome =
            windows.improve(schedule.steps, watch) ? WindowSearch::Outcome::improved : WindowSearch::Outcome::moved;
      } else {
        const std::int64_t begin = random.below(before.recomputed + graph.node_count());
        const std::int64_t end = random.between(begin + 1, before.recomputed + graph.node_count());
        for (std::int64_t i = begin; i < end; ++i)
          window_peak = std::max(window_peak, profile[static_cast<std::size_t>(2 * i + 1)]);
        outcome = windows.improve_window(schedule.steps, static_cast<std::size_t>(begin), static_cast<std::size_t>(end),
                                         kManyStates, watch);
        REQUIRE(outcome != WindowSearch::Outcome::cut_short);
      }
      REQUIRE(core::reference::valid(graph, schedule));
      REQUIRE(scope.contains(graph, schedule));
      const core::Evaluation after = core::evaluate(graph, schedule);
      REQUIRE(after.peak == core::reference::peak(graph, schedule));
      REQUIRE(after.peak <= std::max(budget, before.peak));
      if (before.peak <= budget) {
        REQUIRE(after.cost <= before.cost);
        REQUIRE((outcome == WindowSearch::Outcome::improved) == (after.cost < before.cost));
        improved += after.cost < before.cost ? 1 : 0;
        moved += after.cost == before.cost && schedule.steps != old ? 1 : 0;
        if (after.cost == before.cost) REQUIRE(schedule.length() <= static_cast<std::int64_t>(old.size()));
      } else if (outcome == WindowSearch::Outcome::improved) {
        ++lowered;
      }
      if (outcome == WindowSearch::Outcome::proved) REQUIRE(schedule.steps == old);
    }
  });
  CHECK(improved > 300);
  CHECK(moved > 300);
  CHECK(lowered > 100);
}

TEST_CASE("a window over the whole schedule: the cost that the definitions' search gives, or exact-remat") {
  int recomputing = 0;
  tests::for_each_seed(1500, [&](Random& random) {
    tests::RandomGraphOptions kind = tests::any_graph(random);
    const bool tiny = random.chance(50);
    kind.max_nodes = tiny ? 6 : 9;
    const Graph graph = tests::random_graph(random, kind);
    Schedule schedule = core::drop_unread(graph, tests::random_schedule(random, graph));
    const std::int64_t budget = core::evaluate(graph, schedule).peak;
    WindowSearch windows(graph, kAnySchedule, budget, 1, kMemory);
    core::Stopwatch watch({});
    windows.improve_window(schedule.steps, 0, schedule.steps.size(), kManyStates, watch);
    const std::int64_t cost = core::evaluate(graph, schedule).cost;
    if (tiny && graph.value_count() <= 24) {
      REQUIRE(cost == core::reference::cost(graph, *core::reference::cheapest_within(graph, budget)));
    } else {
      REQUIRE(cost == exact_remat(graph, {.budget = budget}).cost);
    }
    recomputing += schedule.length() > graph.node_count() ? 1 : 0;
  });
  CHECK(recomputing > 20);
}

TEST_CASE("windows: one seed gives one schedule, whatever was searched before; stages are refused") {
  tests::for_each_seed(50, [&](Random& random) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 20, .max_nodes = 40});
    const Schedule start = core::drop_unread(graph, tests::random_schedule(random, graph));
    const std::int64_t budget = core::evaluate(graph, start).peak;
    std::vector<std::vector<NodeId>> ends;
    for (int repeat = 0; repeat < 2; ++repeat) {
      WindowSearch windows(graph, kAnySchedule, budget, 7, kMemory);
      core::Stopwatch watch({});
      ends.push_back(start.steps);
      for (int k = 0; k < 10; ++k) windows.improve(ends.back(), watch);
    }
    REQUIRE(ends[0] == ends[1]);
    CHECK_THROWS_AS(WindowSearch(graph, Scope{OrderRule::stages, 0}, budget, 1, kMemory), std::logic_error);
  });
}

}  // namespace
}  // namespace cairn::solvers::window_test
