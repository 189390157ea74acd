#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "cairn/solvers/remat/hiremate/level.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/solvers/remat/level/cases.h"
#include "cairn/tests/solvers/remat/level/schedules.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/show.h"

/// These functions draw random budgets for a level, and check everything that every answer of H-ILP
/// (solvers/remat/hiremate/level.h) must satisfy. A level is a sequence of parts. A part consists of forward nodes and
/// their backward nodes, and an option is one way to run a part.
namespace cairn::tests::level {

using solvers::LevelAnswer;
using solvers::LevelSearch;

inline LevelSearch search_of(Random& random) { return {.seed = static_cast<std::uint64_t>(random.below(100))}; }

/// Returns a random budget. In most cases, some schedule whose measures are in `all` needs exactly this much memory,
/// and running all nodes once needs at least as much.
inline LevelBudget some_budget(Random& random, const Case& level, const Measures& all) {
  std::set<std::int64_t> peaks, betweens;
  const OptionNeeds once = *measure(level, {level.whole.forward, level.whole.backward}, false);
  for (const auto& [peak, between, cost] : all) {
    if (peak <= once.peak) peaks.insert(peak);
    if (between <= once.between) betweens.insert(between);
  }
  const auto one_of = [&](const std::set<std::int64_t>& some) {
    return random.pick(std::vector<std::int64_t>(some.begin(), some.end())) + (random.chance(15) ? -1 : 0);
  };
  LevelBudget budget{peaks.empty() ? once.peak : one_of(peaks), {}};
  if (random.chance(15)) budget.peak = once.peak + random.below(3);
  if (level.problem.inner && !betweens.empty() && random.chance(70)) {
    budget.between = one_of(betweens);
    if (random.chance(50)) budget.peak = std::get<0>(*all.rbegin());
  }
  return budget;
}

/// Checks which parts run in which phase. A phase ends with the run of its own part. Before it, forward parts can run
/// again, each at most once and in order. They can do so only in the phases of backward parts or, if there are no
/// backward parts, in all phases. Nothing runs in the phase that stands for the rest of the graph.
inline void check_runs(const Case& level, const std::vector<LevelAnswer::Run>& runs) {
  const auto parts = static_cast<std::int32_t>(level.problem.parts.size());
  const auto pairs = static_cast<std::int32_t>(
      std::count_if(level.problem.parts.begin(), level.problem.parts.end(),
                    [](const LevelProblem::Part& part) { return !part.layer.backward.empty(); }));
  const std::int32_t inner = level.problem.inner ? 1 : 0, phases = parts + inner + pairs;
  std::size_t r = 0;
  for (std::int32_t phase = 0; phase < phases; ++phase) {
    const bool rest = inner == 1 && phase == parts;
    std::int32_t before = -1;
    for (; r < runs.size() && runs[r].phase == phase; ++r) {
      REQUIRE(runs[r].node > before);
      before = runs[r].node;
      if (before == phase) continue;
      REQUIRE(before < std::min(parts, phase));
      REQUIRE((pairs == 0 || phase >= parts + inner));
    }
    if (!rest) REQUIRE(before == phase);
  }
  REQUIRE(r == runs.size());
}

/// Checks that an answer either says infeasible, or has a valid schedule that is within the budget and has the stated
/// cost.
inline void check_answer(const Case& level, const LevelBudget& budget, const LevelAnswer& answer) {
  if (!answer.solved()) {
    REQUIRE(answer.status == LevelAnswer::Status::infeasible);
    return;
  }
  CAPTURE(tests::show(answer.schedule.forward), tests::show(answer.schedule.backward), budget.peak);
  const auto needs = measure(level, answer.schedule, false);
  REQUIRE(needs);
  REQUIRE(needs->cost == answer.cost);
  REQUIRE(needs->peak <= budget.peak);
  if (budget.between) REQUIRE(needs->between <= *budget.between);
  check_runs(level, answer.runs);
  REQUIRE(answer.bound <= answer.cost);
  if (answer.status == LevelAnswer::Status::optimal) REQUIRE(answer.bound == answer.cost);
}

}  // namespace cairn::tests::level
