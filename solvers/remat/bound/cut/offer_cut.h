#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/support/incumbent.h"

namespace cairn::solvers {

/// Raises the bounds of the incumbent (the best schedule so far) by cut_bound(), and offers it the schedule that
/// follows the best cut (see follow_cut()). If this schedule exceeds the budget, also offers the schedule that results
/// when evictions have brought it within the budget. On most training graphs of 1,000 nodes, this takes less than 50
/// ms, and the schedule is optimal. On other graphs, it can take a second.
void offer_cut(const core::Graph& graph, std::int64_t budget, Incumbent& incumbent, core::Stopwatch& watch);

/// Offers schedules of cuts, as offer_cut() does, for several budgets. Finds by bisection the lowest peak that such
/// schedules reach. This helps searches that have no budget.
void offer_low_cuts(const core::Graph& graph, Incumbent& incumbent, core::Stopwatch& watch);

/// Helps a search for the least peak of all schedules that cost at most `max_cost`. Raises the incumbent's bound on the
/// peak by cut_peak_bound(), and offers the schedules of cuts for budgets between this bound and the lowest known peak.
void offer_affordable_cuts(const core::Graph& graph, std::int64_t max_cost, Incumbent& incumbent,
                           core::Stopwatch& watch);

}  // namespace cairn::solvers
