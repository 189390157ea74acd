#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Values a graph may have for exact_remat: a set of them is one word.
inline constexpr core::ValueId kMostExactRematValues = 64;

/// The cheapest schedule within the budget, with any amount of recomputation, or the proof that there is none; without
/// a budget the least peak, then the least cost at that peak. Where the budget is too small, the least that is not is
/// found as well.
///
/// Best-first search (A*) over what is in memory: a state is the set of values there and of nodes that may not or need
/// not run again; a move runs a node and first drops an inclusion-minimal set of values that makes room for it. Nothing
/// is dropped before it must be, so a state that holds less at no lower cost than one seen before is left out. What
/// every completion must still run (kept values that are missing, and what they need that is missing, ...) bounds the
/// cost from below; it is consistent, so no state is expanded twice. Exponential in time and memory: cut short by the
/// limit or SolveOptions::memory_bytes, it still gives the bound on the cost that it has reached.
///
/// Throws InputError above kMostExactRematValues.
Solution exact_remat(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
