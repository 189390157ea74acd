#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Runs every solver that has a turn (AutoTurn), each under a share of the limit. Then starts the search of search.h
/// from their schedules, with cost_bound() beside it. Returns the cheapest schedule within the budget; without a
/// budget, the one of least peak. In stages and without recomputation, other solvers get the rest of the limit instead
/// of the search.
Solution auto_remat(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
