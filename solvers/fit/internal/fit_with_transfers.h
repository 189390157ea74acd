#pragma once

#include <cstdint>

#include "cairn/core/limit.h"
#include "cairn/solvers/fit/fit_to_budget.h"
#include "cairn/solvers/remat/bound/cost_bound.h"

namespace cairn::fit {

/// Calls solvers::makespan_bound() for schedules of a graph with core::Graph::host_memory() whose peak is within
/// `budget` and whose bytes on the host are within the host's budget.
solvers::CostBound bound_with_transfers(const core::Graph& graph, std::int64_t budget,
                                        const solvers::SolveOptions& search, const core::Limit& limit);

/// Finds a schedule with transfers whose plans fit into the problem's budget and into the host's
/// (core::Graph::host_memory), for fit_to_budget(). `alone` is what recomputation alone has found, or has not. If a
/// plan exceeds a budget, lowers the budget on the peak by the excess and searches again. The result is not worse than
/// `alone`. Its bounds hold for schedules with transfers.
Fit fit_with_transfers(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                       const FitOptions& options, Fit alone);

/// Calls solve() with the budget or the max_cost of `search`, for objectives about peaks. If the problem's graph has
/// core::Graph::host_memory(), then looks for a schedule with transfers that is faster or, with max_cost, has a lower
/// peak. Bounds and status then hold for schedules with transfers. The result is not worse than search.start if that is
/// in the scope and within the budget or the max_cost. With max_cost, search.start must be a schedule that costs at
/// most that.
Solved solve_for_peak(const Problem& problem, const solvers::SolverInfo& solver, const solvers::SolveOptions& search);

/// Fraction of the time that recomputation alone gets before transfers are tried.
constexpr double kAloneShare = 0.3;
/// Fraction of the remaining time for the bound on the makespan.
constexpr double kBoundShare = 0.12;

}  // namespace cairn::fit
