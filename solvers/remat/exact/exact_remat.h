#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Largest number of values of a graph that exact_remat() accepts. The limit exists because a set of values is stored
/// in one 64-bit word.
inline constexpr core::ValueId kMostExactRematValues = 64;

/// Finds the cheapest schedule within the budget, with any number of recomputations, or proves that no schedule is
/// within the budget. If the budget is too small, also finds the least feasible budget. Without a budget, finds the
/// least peak, and the cheapest schedule with this peak.
///
/// The algorithm is a best-first search (A*) over the contents of memory. live_set_search.h describes its states,
/// transitions and lower bound. The bound is consistent, so no state is expanded twice.
///
/// Takes exponential time and memory. If SolveOptions::limit or SolveOptions::memory_bytes ends the search early, the
/// lower bound on the cost that was proved until then is still returned.
///
/// Throws InputError if the graph has more than kMostExactRematValues values.
Solution exact_remat(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
