#pragma once

#include "cairn/solvers/fit/fit_to_budget.h"

namespace cairn::fit {

/// Finds a schedule with transfers whose plans fit into the problem's budget and into the host's
/// (core::Graph::host_memory), for fit_to_budget(). `alone` is what recomputation alone has found, or has not. If a
/// plan exceeds a budget, lowers the budget on the peak by the excess and searches again. The result is not worse than
/// `alone`. Its bounds hold for schedules with transfers.
Fit fit_with_transfers(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                       const FitOptions& options, Fit alone);

/// Fraction of the time that recomputation alone gets before transfers are tried.
constexpr double kAloneShare = 0.3;

}  // namespace cairn::fit
