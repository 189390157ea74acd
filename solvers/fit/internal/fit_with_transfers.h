#pragma once

#include <cstdint>

#include "cairn/core/limit.h"
#include "cairn/solvers/fit/fit_to_budget.h"
#include "cairn/solvers/remat/bound/cost_bound.h"

namespace cairn::fit {

/// Computes a lower bound on the makespan of schedules with transfers (solvers::makespan_bound()). The bound holds for
/// schedules whose peak is at most `budget` bytes and whose copies on the host fit into the host's budget. The graph
/// must have core::Graph::host_memory().
solvers::CostBound bound_with_transfers(const core::Graph& graph, std::int64_t budget,
                                        const solvers::SolveOptions& search, const core::Limit& limit);

/// Finds a schedule with transfers whose plans fit into the problem's budget and into the budget of the host's memory
/// (core::Graph::host_memory()). fit_to_budget() calls this function. `alone` is the result of the search for
/// recomputation without transfers, which may have failed. If a plan exceeds one of the two budgets, lowers the budget
/// that the search gets and searches again. The result is not worse than `alone`. Its bounds hold for schedules with
/// transfers.
Fit fit_with_transfers(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                       const FitOptions& options, Fit alone);

/// Calls solve() with the budget or the max_cost of `search`, for objectives about peaks. If the problem's graph has
/// core::Graph::host_memory(), then looks for a schedule with transfers that is faster or, with max_cost, has a lower
/// peak. Bounds and status then hold for schedules with transfers. The result is not worse than search.start if the
/// start is in the scope and keeps to the budget or the max_cost. With max_cost, there must be a start that costs at
/// most max_cost.
Solved solve_for_peak(const Problem& problem, const solvers::SolverInfo& solver, const solvers::SolveOptions& search);

/// The search for recomputation alone gets this fraction of the time, before transfers are tried.
constexpr double kAloneShare = 0.3;
/// Computing the lower bound on the makespan gets this fraction of the remaining time.
constexpr double kBoundShare = 0.12;

}  // namespace cairn::fit
