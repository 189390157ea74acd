// Compares solver rotor with all persistent schedules of small chains, which are enumerated by their definition. In a
// persistent schedule, a value that is stored for a backward node stays in memory until this node has run.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/models/registry.h"
#include "cairn/solvers/registry.h"
#include "cairn/solvers/remat/exact/exact_remat.h"
#include "cairn/solvers/remat/rotor/block_chain.h"
#include "cairn/solvers/remat/rotor/block_options.h"
#include "cairn/solvers/remat/rotor/dynamic_program.h"
#include "cairn/solvers/remat/rotor/rotor.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/solvers/remat/persistent_chains.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::rotor_property_test {
namespace {

using core::Graph;
using core::NodeId;
using core::Schedule;
using tests::ChainShape;
using tests::PersistentSchedules;
using tests::Random;
using tests::random_chain;
using tests::random_chain_shape;

RotorOptions persistent(std::optional<std::int64_t> budget) {
  RotorOptions options;
  options.budget = budget;
  options.retain = false;
  options.slots = 1000;  // more slots than the number of bytes of any peak in these tests
  return options;
}

TEST_CASE("rotor is the cheapest of all persistent schedules of a chain, or there is none") {
  std::int64_t pairs = 0, infeasible = 0, recomputing = 0, above_exact = 0;
  std::map<std::pair<int, std::uint64_t>, std::vector<Schedule>> known;
  tests::for_each_seed(1500, [&](Random& random) {
    const int n = static_cast<int>(random.between(2, 5));
    const auto reads = static_cast<std::uint64_t>(random.below(std::int64_t{1} << (2 * n)));
    const ChainShape shape = random_chain_shape(n, reads);
    auto& schedules = known[{n, reads}];
    if (schedules.empty()) schedules = PersistentSchedules(shape).all();
    const Graph graph = random_chain(random, shape);
    core::Evaluator evaluator(graph);
    std::vector<std::pair<std::int64_t, std::int64_t>> measures;  // peak and cost of each schedule
    for (const Schedule& schedule : schedules) {
      const core::Evaluation measured = evaluator.evaluate(schedule);
      REQUIRE(measured.valid());
      measures.emplace_back(measured.peak, measured.cost);
    }
    std::vector<std::int64_t> budgets;
    for (int i = 0; i < 4; ++i) budgets.push_back(random.pick(measures).first);
    const std::int64_t least = std::min_element(measures.begin(), measures.end())->first;
    budgets.insert(budgets.end(), {least, least - 1});
    for (const std::int64_t budget : budgets) {
      CAPTURE(n, reads, budget);
      std::size_t best = measures.size();
      for (std::size_t i = 0; i < measures.size(); ++i) {
        if (measures[i].first <= budget && (best == measures.size() || measures[i].second < measures[best].second))
          best = i;
      }
      const Solution solution = rotor(graph, persistent(budget));
      ++pairs;
      tests::require_measured(graph, solution);
      if (best == measures.size()) {
        ++infeasible;
        REQUIRE(solution.peak > budget);
        REQUIRE((solution.status == Status::not_found || solution.status == Status::infeasible));
        continue;
      }
      REQUIRE(core::reference::peak(graph, schedules[best]) <= budget);
      REQUIRE(solution.peak <= budget);
      REQUIRE(solution.cost == core::reference::cost(graph, schedules[best]));
      recomputing += solution.schedule.length() > graph.node_count() ? 1 : 0;
      if (n > 4) continue;
      const Solution optimum = exact_remat(graph, {.budget = budget});
      REQUIRE(optimum.status == Status::optimal);
      REQUIRE(optimum.cost <= solution.cost);
      above_exact += optimum.cost < solution.cost ? 1 : 0;
    }
    REQUIRE(rotor(graph, persistent(std::nullopt)).peak == least);
  });
  CHECK(pairs >= 2000);
  CHECK(infeasible > 500);
  CHECK(recomputing > 1000);
  CHECK(above_exact > 100);  // some cheaper schedules are not persistent
}

/// Checks that a schedule for a level of rotor's table never needs more bytes than the level stands for.
TEST_CASE("what fits a level of the table fits as many bytes, and more levels never cost more") {
  std::int64_t schedules = 0;
  tests::for_each_seed(600, [&](Random& random) {
    const Graph graph = tests::random_graph(random, tests::any_graph(random, {.min_nodes = 4, .max_nodes = 30}));
    const auto chain = [&]() -> std::optional<BlockChain> {
      try {
        return find_block_chain(graph, static_cast<std::int32_t>(random.between(2, 30)),
                                static_cast<std::int32_t>(random.between(1, 30)));
      } catch (const core::InputError&) {
        return std::nullopt;
      }
    }();
    if (!chain) return;
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      for (const NodeId u : graph.predecessors(v)) {
        if (graph.backward(u)) REQUIRE(chain->block_of[u] >= chain->block_of[v]);
        if (!graph.backward(v)) REQUIRE(chain->block_of[u] <= chain->block_of[v]);
      }
    }
    BlockSchedules blocks;
    core::Stopwatch watch({});
    const ChainProblem problem = block_problem(graph, *chain, watch, blocks);
    const LeastMemory least = least_chain_memory(problem);
    const auto peak = [&](const std::vector<ChainStep>& steps) {
      const Schedule schedule =
          core::drop_unread(graph, core::run_pinned_once(graph, flat_schedule(graph, blocks, steps)));
      REQUIRE(core::reference::valid(graph, schedule));
      return core::reference::peak(graph, schedule);
    };
    REQUIRE(peak(least.steps) <= least.bytes);
    const std::int64_t most = std::max<std::int64_t>(least.bytes, 1) * 3 / 2;
    const ChainTable table(problem, most, random.between(5, 100), watch);
    REQUIRE(table.complete());
    double cheapest = std::numeric_limits<double>::infinity();
    for (std::int64_t level = 0; level <= table.top(); ++level) {
      REQUIRE(table.time(level) <= cheapest);
      if (table.time(level) == cheapest) continue;
      cheapest = table.time(level);
      REQUIRE(level * table.unit() >= least.bytes);
      REQUIRE(peak(table.steps(level)) <= level * table.unit());
      ++schedules;
    }
  });
  CHECK(schedules > 100);
}

TEST_CASE("equal steps: the number of runs that Griewank's revolve needs") {
  // Each snapshot takes one unit of memory, and nothing else takes memory. To reverse a step, only the state before it
  // is needed. With s snapshots, including the one at the start, reversing l steps takes r l - C(s + r, s + 1) forward
  // runs of steps, besides the reversals themselves. Here, r is the least number with C(s + r, s) >= l (Griewank and
  // Walther 2000, Algorithm 799).
  const auto choose = [](std::int64_t n, std::int64_t k) {
    std::int64_t value = 1;
    for (std::int64_t i = 1; i <= k; ++i) value = value * (n - k + i) / i;
    return value;
  };
  for (const int steps : {1, 2, 3, 7, 10, 20, 56, 57, 100}) {
    ChainProblem problem;
    for (int l = 0; l < steps; ++l) {
      ChainStage stage;
      stage.checkpoint = stage.forward_time = 1;
      stage.turns.emplace_back();
      problem.stages.push_back(stage);
    }
    core::Stopwatch watch({});
    const ChainTable table(problem, 10, 10, watch);
    for (int snapshots = 1; snapshots <= 10; ++snapshots) {
      std::int64_t repetitions = 0;
      while (choose(snapshots + repetitions, snapshots) < steps) ++repetitions;
      const std::int64_t runs = repetitions * steps - choose(snapshots + repetitions, snapshots + 1);
      CAPTURE(steps, snapshots);
      CHECK(table.time(snapshots) == static_cast<double>(runs));
    }
    CHECK(least_chain_memory(problem).bytes == (steps == 1 ? 0 : 1));
  }
}

TEST_CASE("rotor on training graphs of any shape: valid, within the budget or not found, never below the optimum") {
  std::int64_t solved = 0, refused = 0, cheaper = 0;
  tests::for_each_seed(1500, [&](Random& random) {
    tests::RandomGraphOptions kind = tests::any_graph(random);
    kind.min_nodes = 4;
    kind.max_nodes = random.chance(50) ? 8 : 24;
    const Graph graph = tests::random_graph(random, kind);
    RotorOptions options;
    if (random.chance(80)) options.budget = tests::any_budget(random, graph);
    options.slots = random.between(1, 100);
    options.blocks = random.between(2, 30);
    Solution solution;
    try {
      solution = rotor(graph, options);
    } catch (const core::InputError&) {
      ++refused;
      return;
    }
    ++solved;
    tests::require_measured(graph, solution);
    REQUIRE(solution.peak_bound.value == core::peak_lower_bound(graph));
    const bool fits = !options.budget || solution.peak <= *options.budget;
    REQUIRE(fits == (solution.status == Status::feasible || solution.status == Status::optimal));
    REQUIRE(rotor(graph, options).schedule == solution.schedule);
    options.retain = false;
    const Solution plain = rotor(graph, options);
    if (fits) REQUIRE(plain.cost >= solution.cost);
    cheaper += plain.cost > solution.cost ? 1 : 0;
    if (!options.budget || graph.value_count() > 10) return;
    const Solution optimum = exact_remat(graph, {.budget = options.budget});
    if (fits) REQUIRE(optimum.cost <= solution.cost);
    if (optimum.status == Status::infeasible) REQUIRE_FALSE(fits);
  });
  CHECK(solved > 150);
  CHECK(refused > 500);
  CHECK(cheaper > 0);
}

std::string refusal(const Graph& graph) {
  return tests::error_of([&] { find_solver("rotor").solve(graph, {}); });
}

TEST_CASE("rotor says which graphs are no chains, and which marks contradict the edges") {
  const auto node = [](std::string name, std::vector<NodeId> inputs, bool backward, NodeId forward = core::kNoNode) {
    core::Node made = tests::make_node(std::move(name), 1, std::move(inputs));
    made.backward = backward;
    made.forward = forward;
    return made;
  };
  CHECK(refusal(tests::build_graph({node("a", {}, false), node("b", {0}, false)})) ==
        "no node of the graph is marked backward: a chain of blocks needs a training graph");
  CHECK(refusal(tests::build_graph({node("a", {}, false), node("a/grad", {0}, true, 0), node("b", {1}, false)})) ==
        "forward node 'b' reads backward node 'a/grad'; mark both the same");
  CHECK(refusal(tests::build_graph({node("a", {}, false), node("a/grad", {0}, true), node("b/grad", {1}, true, 1)})) ==
        "backward node 'b/grad' names 'a/grad' as its forward node, but that is backward too");
  CHECK(refusal(tests::build_graph({node("a", {}, false), node("a/grad", {0}, true, 0)})) ==
        "the graph is not a chain of blocks: more than one value crosses every boundary of its forward part");
  CHECK(refusal(core::Graph()).empty());  // the empty graph has nothing to run
}

TEST_CASE("models are chains of blocks, and rotor gets them within half of their memory") {
  struct Expected {
    const char* name;
    models::BuildOptions options;
    std::size_t blocks, with_residents;
  };
  const auto options = [](std::map<std::string, std::int64_t, std::less<>> values) {
    return models::BuildOptions{.values = std::move(values)};
  };
  // In gpt2 and mlp-mixer, each layer is two blocks. In unet and transformer, there are many blocks only if values may
  // cross the boundaries between blocks as residents.
  for (const Expected& expected :
       {Expected{"ffn", options({{"batch", 64}}), 16, 16},
        {"gpt2", options({{"layers", 6}, {"seq", 64}, {"width", 48}, {"vocab", 64}}), 12, 12},
        {"mlp-mixer", options({{"batch", 2}}), 16, 16},
        {"resnet50", options({{"batch", 1}, {"image", 64}}), 32, 32},
        {"unet", options({{"batch", 1}}), 10, 50},
        {"transformer", options({{"batch", 1}, {"seq", 16}, {"layers", 3}, {"vocab", 64}}), 12, 30}}) {
    CAPTURE(expected.name);
    const Graph graph = models::build_model(expected.name, expected.options);
    CHECK(find_block_chain(graph, graph.node_count(), 200).blocks.size() >= expected.blocks);
    CHECK(find_block_chain(graph, std::max(16, graph.node_count() / 24), 200).blocks.size() >= expected.with_residents);
    CHECK(find_block_chain(graph, graph.node_count(), 7).blocks.size() <= 7);
    SolveOptions half{.budget = tests::baseline_peak(graph) / 2};
    half.own["slots"] = 200;
    const Solution solution = find_solver("rotor").solve(graph, half);
    CHECK(solution.peak <= *half.budget);
    CHECK(core::evaluate(graph, solution.schedule).valid());
  }
}

TEST_CASE("rotor keeps to its limits, and auto does without it where there is no chain") {
  Random random(5);
  const ChainShape shape = random_chain_shape(30, 0x5555555555555555);
  const Graph graph = random_chain(random, shape);
  SolveOptions options{.budget = tests::baseline_peak(graph) * 2 / 3};
  options.limit.work = 0;
  CHECK(core::reference::valid(graph, find_solver("rotor").solve(graph, options).schedule));
  options.limit.work = 100'000;
  for (const char* scope_of : {"auto", "rotor"})
    CHECK(core::reference::valid(graph, find_solver(scope_of).solve(graph, options).schedule));
  options.scope.max_occurrences = 2;
  CHECK_THROWS_AS(find_solver("rotor").solve(graph, options), core::InputError);
}

}  // namespace
}  // namespace cairn::solvers::rotor_property_test
