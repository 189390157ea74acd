#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/fit/planned_schedule.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/plan/planner.h"

/// Says what a link to the host's memory brings for a graph.
namespace cairn::fit {

struct LinkWorth {
  /// The input order with transfers for which no step waits, with the lowest peak found. Without a better one, it is
  /// the baseline.
  PlannedSchedule free;
  /// Largest peak of a schedule without transfers that costs less than transfers alone within the same memory, in
  /// bytes. Nothing if no such schedule is known.
  std::optional<std::int64_t> recompute_below;
};

/// Finds out what the link of the problem's graph brings. Bisects budgets, and adds transfers to the input order
/// (solvers::add_transfers()) under each. `recomputed` has the peaks and costs of schedules without transfers, with
/// sizes as in `rounded`, which is `problem.rounded_up(plan->alignment)`. Without `plan`, budgets limit peaks. The
/// graph must know its host memory.
LinkWorth link_worth(const Problem& problem, const Problem& rounded, const std::vector<solvers::Tradeoff>& recomputed,
                     const std::optional<solvers::PlanOptions>& plan, const core::Limit& limit);

}  // namespace cairn::fit
