#pragma once

#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/registry.h"

namespace cairn::fit {

/// Does what find_least_budget() does, but only finds schedules without transfers. If the graph has
/// core::Graph::host_memory(), the lower bound in the result also holds for schedules with transfers.
LeastBudget least_budget_of_steps(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                                  const LeastBudgetOptions& options);

/// Adds transfers to the schedules of `least` and to the baseline, so that the peak is as low as possible
/// (solvers::least_peak_with_transfers()). Puts the resulting schedule into `least` if its plan is lower than the plan
/// of `least`, and if the plan of its copies on the host fits into the host's budget. Does nothing if the graph has no
/// core::Graph::host_memory(). `limit` replaces the limit in `options`.
void lower_with_transfers(const Problem& problem, const Problem& rounded, const LeastBudgetOptions& options,
                          const core::Limit& limit, LeastBudget& least);

/// Returns options whose start has no transfers, for solvers that cannot handle transfers. The new start is stored in
/// `steps`, which must live as long as the result.
solvers::SolveOptions without_transfers(solvers::SolveOptions search, core::Schedule& steps);

}  // namespace cairn::fit
