// Compares the answers of H-ILP (solvers/remat/hiremate/level.h) on small levels with two results that are found by
// enumeration: the best of all schedules that H-ILP can choose, and the optimum by the objective of its integer
// program. A level is a sequence of parts. A part consists of forward nodes and their backward nodes, and an option is
// one way to run a part.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/solvers/remat/exact/exact_remat.h"
#include "cairn/solvers/remat/hiremate/level.h"
#include "cairn/solvers/remat/rotor/layers.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/solvers/no_engine.h"
#include "cairn/tests/solvers/remat/level/accounting.h"
#include "cairn/tests/solvers/remat/level/answers.h"
#include "cairn/tests/solvers/remat/level/cases.h"
#include "cairn/tests/solvers/remat/level/schedules.h"
#include "cairn/tests/solvers/remat/training_graphs.h"
#include "cairn/tests/support/seeds.h"
#include "cairn/tests/support/show.h"

namespace cairn::tests::level::level_property_test {
namespace {

using solvers::exact_remat;
using solvers::Level;
using solvers::SolveOptions;

struct Tally {
  int pairs = 0, infeasible = 0, again = 0, equal = 0, dearer = 0, missed = 0;
};

void check_level(Random& random, const Case& level, Tally& tally) {
  CAPTURE(show(level));
  const Measures all = all_choices(level);
  REQUIRE_FALSE(all.empty());
  const Level solver(level.graph, level.problem);
  const LayerOption once = solver.cheapest(), again = solver.again();
  for (const LayerOption* option : {&once, &again}) REQUIRE(measure(level, *option, false));
  REQUIRE(cost_of(level.graph, once) == cost_of(level.graph, {level.whole.forward, level.whole.backward}));
  const bool pinned = std::any_of(level.whole.forward.begin(), level.whole.forward.end(),
                                  [&](NodeId v) { return level.graph.pinned(v); });
  if (pinned) REQUIRE(again == once);
  if (level.problem.inner && !pinned) {
    REQUIRE(needs_of(level.graph, level.whole, again).between == 0);
    REQUIRE(again.forward == for_others(level.graph, level.whole));
  }
  for (int k = 0; k < 2; ++k) {
    const LevelBudget budget = some_budget(random, level, all);
    CAPTURE(budget.peak, budget.between.value_or(-1));
    std::string best;
    for (const auto& [peak, between, cost] : all) best += fmt::format("({} {} {}) ", peak, between, cost);
    CAPTURE(best);
    const LevelSearch search = search_of(random);
    const LevelAnswer answer = solver.solve(budget, search);
    check_answer(level, budget, answer);
    REQUIRE((answer.status == LevelAnswer::Status::optimal || answer.status == LevelAnswer::Status::infeasible));
    const std::optional<std::int64_t> least = least_cost(all, budget);
    if (level.single) {
      CAPTURE(answer.cost, least.value_or(-1));
      REQUIRE(answer.solved() == least.has_value());
      if (least) REQUIRE(answer.cost == *least);
    } else if (answer.solved()) {
      REQUIRE(least);
      REQUIRE(answer.cost >= *least);
    }
    ++tally.pairs;
    tally.infeasible += !answer.solved();
    tally.missed += !answer.solved() && least;
    if (answer.solved()) {
      tally.equal += answer.cost == *least;
      tally.dearer += answer.cost > *least;
      tally.again += answer.cost > cost_of(level.graph, once);
    }
  }
}

/// Checks one random level for each seed, with two budgets, and counts the outcomes.
Tally tally_of(std::uint64_t seeds, bool inner, bool single, std::int64_t most_choices) {
  Tally tally;
  tests::for_each_seed(
      seeds, [&](Random& random) { check_level(random, random_case(random, inner, single, most_choices), tally); });
  return tally;
}

TEST_CASE("H-ILP over single nodes: the cheapest schedule of its class", "[level]") {
  if (no_engine()) return;
  const Tally tally = tally_of(800, false, true, 20000);
  CHECK(tally.infeasible > 20);
  CHECK(tally.again > 10);
}

/// Returns a level of a whole graph whose layers have one forward node and at most one backward node each. Returns
/// nothing if some forward node has a backward node but no reader. Such a node must run at some time before its
/// backward node, but cheapest_of_single() does not enforce it.
std::optional<Case> layers_as_parts(Graph graph) {
  Case level{.graph = std::move(graph)};
  const std::vector<Layer> layers = layers_of(level.graph);
  std::vector<const Layer*> all;
  for (const Layer& layer : layers) {
    if (!layer.backward.empty() && level.graph.successors(layer.forward[0]).empty()) return std::nullopt;
    level.problem.parts.push_back({layer, {{layer.forward, layer.backward}}});
    all.push_back(&layer);
  }
  level.whole = join(all);
  return level;
}

TEST_CASE("H-ILP over more single nodes: the cheapest schedule of its class, by dynamic programming", "[level]") {
  if (no_engine()) return;
  Tally tally;
  tests::for_each_seed(700, [&](Random& random) {
    tests::TrainingOptions kind{
        .forward = tests::any_graph(random, {.min_nodes = 4, .max_nodes = 6, .in_place = false, .keep = false})};
    kind.without_backward = random.chance(70) ? 0 : random.chance(50) ? 30 : 100;
    kind.two_backward = 0;
    const std::optional<Case> made = layers_as_parts(tests::training_graph(random, kind));
    if (!made || made->graph.value_count() > 13) return;
    const Case& level = *made;
    CAPTURE(show(level));
    const Level solver(level.graph, level.problem);
    const OptionNeeds once = *measure(level, solver.cheapest(), false);
    for (int k = 0; k < 3; ++k) {
      LevelBudget budget{random.between(core::peak_lower_bound(level.graph), once.peak), {}};
      CAPTURE(budget.peak);
      const LevelAnswer answer = solver.solve(budget, search_of(random));
      check_answer(level, budget, answer);
      const std::optional<std::int64_t> least = cheapest_of_single(level, budget.peak);
      REQUIRE(answer.solved() == least.has_value());
      if (least) REQUIRE(answer.cost == *least);
      ++tally.pairs;
      tally.infeasible += !answer.solved();
      tally.again += answer.solved() && answer.schedule.forward.size() + answer.schedule.backward.size() >
                                            static_cast<std::size_t>(level.graph.node_count());
      // The bound holds for all schedules, even for those that H-ILP does not consider. So it cannot exceed H-ILP's
      // cost.
      SolveOptions any{.budget = budget.peak, .limit = {.work = 20'000}};
      if (answer.solved()) REQUIRE(exact_remat(level.graph, any).cost_bound.value <= answer.cost);
    }
  });
  CAPTURE(tally.pairs, tally.infeasible, tally.again);
  CHECK(tally.pairs > 500);
  CHECK(tally.infeasible > 50);
  CHECK(tally.again > 100);
}

TEST_CASE("H-ILP over single nodes of an inner level: the cheapest of its class, between as asked for", "[level]") {
  if (no_engine()) return;
  const Tally tally = tally_of(600, true, true, 10000);
  CHECK(tally.infeasible > 20);
  CHECK(tally.again > 5);
}

TEST_CASE("H-ILP over parts of several nodes and options: never below the cheapest of its class", "[level]") {
  if (no_engine()) return;
  for (const bool inner : {false, true}) {
    const Tally tally = tally_of(300, inner, false, inner ? 5000 : 8000);
    CAPTURE(inner, tally.pairs, tally.infeasible, tally.missed, tally.equal, tally.dearer, tally.again);
    CHECK(tally.missed < tally.pairs / 10);
    CHECK(tally.dearer < tally.equal / 5);
  }
}

TEST_CASE("H-ILP with sizes near the limit, whose differences are single bytes", "[level]") {
  if (no_engine()) return;
  int by_one = 0;
  tests::for_each_seed(150, [&](Random& random) {
    tests::TrainingOptions kind;
    kind.forward = {.min_nodes = 3, .max_nodes = 4, .scratch = false, .in_place = false, .keep = false};
    kind.two_backward = kind.without_backward = 0;
    std::vector<core::Node> nodes = tests::training_nodes(random, kind);
    const int shift = random.pick(std::vector<int>{30, 45, 58});
    for (core::Node& node : nodes) {
      node.size = (std::int64_t{1} << shift) + random.below(3);
      node.cost = random.between(1, 9);
    }
    const std::optional<Case> made = layers_as_parts(tests::build_graph(nodes));
    if (!made) return;
    const Case& level = *made;
    CAPTURE(show(level), shift);
    const Level solver(level.graph, level.problem);
    const std::int64_t once = measure(level, solver.cheapest(), false)->peak;
    const std::int64_t least = core::peak_lower_bound(level.graph);
    for (const std::int64_t peak : {once, once - 1, once - 2, least, least + 1, least + 2}) {
      const LevelBudget budget{peak, {}};
      const LevelAnswer answer = solver.solve(budget, search_of(random));
      CAPTURE(peak);
      check_answer(level, budget, answer);
      const std::optional<std::int64_t> optimum = cheapest_of_single(level, peak);
      REQUIRE(answer.solved() == optimum.has_value());
      if (optimum) REQUIRE(answer.cost == *optimum);
      by_one += peak == once - 1 && optimum;
    }
  });
  CHECK(by_one > 20);
}

TEST_CASE("H-ILP keeps to limits", "[level]") {
  if (no_engine()) return;
  tests::for_each_seed(20, [](Random& random) {
    const Case level = random_case(random, false, false, 1'000'000'000);
    const Level solver(level.graph, level.problem);
    const LevelBudget budget{std::int64_t{1} << 40, {}};
    const std::atomic<bool> stop = true;
    for (const core::Limit& limit : {core::Limit{.seconds = 0}, core::Limit{.work = 0}, core::Limit{.stop = &stop}}) {
      for (const bool highs : {false, true}) {
        LevelSearch search{.limit = limit, .highs = highs};
        const LevelAnswer answer = solver.solve(budget, search);
        if (answer.solved()) check_answer(level, budget, answer);
        REQUIRE(answer.status != LevelAnswer::Status::infeasible);
      }
    }
  });
}

TEST_CASE("H-ILP is the optimum of what it counts, with corrections and without", "[level]") {
  if (no_engine()) return;
  int pairs = 0, infeasible = 0, dearer = 0;
  tests::for_each_seed(2000, [&](Random& random) {
    const Case level = random_case(random, random.chance(50), random.chance(20), 1500);
    CAPTURE(show(level), level.problem.inner);
    const Measures flat = all_choices(level);
    const Measures exact = Accounting(level, true, true).all(), coarse = Accounting(level, false, true).all(),
                   once = Accounting(level, true, false).all();
    const Level solver(level.graph, level.problem);
    for (int k = 0; k < 2; ++k) {
      const LevelBudget budget = some_budget(random, level, k == 0 ? exact : coarse);
      CAPTURE(budget.peak, budget.between.value_or(-1));
      LevelSearch search = search_of(random);
      const std::optional<std::int64_t> least = least_cost(flat, budget);
      for (const Measures* counted : {&exact, &coarse, &once}) {
        search.corrections = counted != &coarse;
        search.again = counted != &once;
        search.highs = random.chance(20);
        const LevelAnswer answer = solver.solve(budget, search);
        check_answer(level, budget, answer);
        const std::optional<std::int64_t> optimum = least_cost(*counted, budget);
        CAPTURE(search.corrections, search.again, search.highs, answer.cost, optimum.value_or(-1), least.value_or(-1));
        REQUIRE(answer.solved() == optimum.has_value());
        ++pairs;
        infeasible += !optimum;
        if (!optimum) continue;
        REQUIRE(answer.cost == *optimum);
        dearer += answer.cost > *least_cost(once, {std::int64_t{1} << 40, {}});
        REQUIRE((least && answer.cost >= *least));
        search.hint = &answer.runs;
        REQUIRE(solver.solve(budget, search).cost == answer.cost);
        search.hint = nullptr;
      }
    }
  });
  CAPTURE(pairs, infeasible, dearer);
  CHECK(pairs > 4000);
  CHECK(infeasible > 500);
  CHECK(dearer > 40);
}

}  // namespace
}  // namespace cairn::tests::level::level_property_test
