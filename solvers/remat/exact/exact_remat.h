#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Largest number of values that exact_remat() accepts. A set of values is stored in one 64-bit word.
inline constexpr core::ValueId kMostExactRematValues = 64;

/// Finds the cheapest schedule within the budget, with any number of recomputations, or proves that there is none.
/// Without a budget, finds the least peak, and the least cost at that peak. If the budget is too small, also finds the
/// least feasible budget.
///
/// The algorithm is a best-first search (A*) over the contents of memory. A state consists of the values in memory and
/// of the nodes that may not or need not run again. A transition runs a node, and before that drops an
/// inclusion-minimal set of values to make room. Values are dropped only when memory would be exceeded. So a state is
/// left out if an earlier state has no higher cost and holds all values of this state. The lower bound on the remaining
/// cost is the cost of the nodes that must still run: the producers of kept values that are missing, the producers of
/// the missing inputs of these, and so on. The bound is consistent, so no state is expanded twice. Takes exponential
/// time and memory. If the limit or SolveOptions::memory_bytes ends the search early, the bound on the cost that was
/// reached still holds.
///
/// Throws InputError if the graph has more than kMostExactRematValues values.
Solution exact_remat(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
