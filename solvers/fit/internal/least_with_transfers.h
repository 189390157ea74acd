#pragma once

#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/registry.h"

namespace cairn::fit {

/// find_least_budget() for schedules without transfers. If the graph has core::Graph::host_memory(), the bound holds
/// for schedules with transfers, too.
LeastBudget least_budget_of_steps(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                                  const LeastBudgetOptions& options);

/// Adds transfers to the schedules of `least` and to the baseline, so that the peak is as low as possible
/// (solvers::least_peak_with_transfers()). Takes the result if its plan is lower than that of `least` and its plan on
/// the host fits into the host's budget. Does nothing if the graph knows no host memory. `limit` replaces that of
/// `options`.
void lower_with_transfers(const Problem& problem, const Problem& rounded, const LeastBudgetOptions& options,
                          const core::Limit& limit, LeastBudget& least);

/// Returns the options without a start's transfers, for solvers that only know steps. `steps` holds the start's steps,
/// and must live as long as the result.
solvers::SolveOptions without_transfers(solvers::SolveOptions search, core::Schedule& steps);

}  // namespace cairn::fit
