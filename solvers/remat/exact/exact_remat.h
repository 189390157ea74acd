#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Most values of a graph that exact_remat takes: a set of values is one word.
inline constexpr core::ValueId kMostExactRematValues = 64;

/// Finds the cheapest schedule within the budget, with any amount of recomputation, or the proof that there is none.
/// Without a budget, finds the least peak, then the least cost at that peak. If the budget is too small, finds the
/// least feasible budget as well.
///
/// Best-first search (A*) over the contents of memory: a state is the set of values in memory and of nodes that may not
/// or need not run again; a move runs a node and first drops an inclusion-minimal set of values that makes room for it.
/// Nothing is dropped before it must be, so a state that holds less at no lower cost than one seen before is left out.
/// The nodes that every completion must still run (makers of kept values that are missing, and of what they need that
/// is missing, ...) bound the cost from below; the bound is consistent, so no state is expanded twice. Exponential in
/// time and memory: if cut short by the limit or SolveOptions::memory_bytes, it still gives the bound on the cost that
/// it has reached.
///
/// Throws InputError above kMostExactRematValues.
Solution exact_remat(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
