#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Runs the other solvers that have a turn, each under a share of the limit, then searches from what they found
/// (search.h) with cost_bound() beside it, and returns the cheapest schedule within the budget; without a budget the
/// one of least peak. In stages, and without recomputation, others get the rest of the limit instead of the search.
Solution auto_remat(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
