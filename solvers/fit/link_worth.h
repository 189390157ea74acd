#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/fit/planned_schedule.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/plan/planner.h"

/// Finds out how much transfers over a link to the host's memory can save for a graph.
namespace cairn::fit {

struct LinkWorth {
  /// A schedule of the input order with transfers that cost no time, because no step waits for them. Of all such
  /// schedules found, this is the one of lowest memory. It is the baseline if transfers do not lower the memory.
  PlannedSchedule free;
  /// Largest peak in bytes at which recomputation beats transfers: a known schedule without transfers that has this
  /// peak costs less than the input order with transfers within the same peak. Nothing if no such schedule is known.
  std::optional<std::int64_t> recompute_below;
};

/// Finds out what the link of the problem's graph can save. Bisects budgets, and adds transfers to the input order
/// (solvers::add_transfers()) under each budget. `recomputed` has the peaks and costs of schedules without transfers,
/// with sizes as in `rounded`, which is `problem.rounded_up(plan->alignment)`. Without `plan`, budgets limit peaks. The
/// graph must have core::Graph::host_memory().
LinkWorth link_worth(const Problem& problem, const Problem& rounded, const std::vector<solvers::Tradeoff>& recomputed,
                     const std::optional<solvers::PlanOptions>& plan, const core::Limit& limit);

}  // namespace cairn::fit
