#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

/// Raises the incumbent's bounds by cut_bound(), and offers the schedule that follows the best cut. If that schedule is
/// above the budget, offers it once evictions have brought it within the budget. On most training graphs of 1,000
/// nodes, this takes less than 50 ms, and the schedule is optimal. On other graphs, it can take a second.
void offer_cut(const core::Graph& graph, std::int64_t budget, Incumbent& incumbent, core::Stopwatch& watch);

/// Offers such schedules for several budgets, down to the lowest peak that they reach, by bisection. For searches
/// without a budget.
void offer_low_cuts(const core::Graph& graph, Incumbent& incumbent, core::Stopwatch& watch);

/// For searches for the least peak of all schedules that cost at most `max_cost`: raises the incumbent's bound on the
/// peak by cut_peak_bound(), and offers the schedules of cuts for budgets between this bound and the lowest peak.
void offer_affordable_cuts(const core::Graph& graph, std::int64_t max_cost, Incumbent& incumbent,
                           core::Stopwatch& watch);

}  // namespace cairn::solvers
