#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Runs the other solvers, each under a share of the limit, improves what they found (refine.h), and returns the
/// cheapest schedule within the budget; without a budget the one of least peak.
Solution auto_remat(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
