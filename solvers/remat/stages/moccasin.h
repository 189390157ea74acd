#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Finds schedules by constraint programming over retention intervals with CP-SAT. This is MOCCASIN of Bartan et al.
/// 2023. Each node v has C_v intervals. An interval consists of an event at which the node runs, an event for each
/// output at which that output is last read, and a literal that says whether the interval is present.
///
/// There are two sets of schedules, selected by the option `staged`:
/// - Staged (section 2.3): the first runs of the nodes are in the input order. Between two first runs, nodes run again
/// in that order, each at most once. This is the scope {OrderRule::stages, c}.
/// - Not staged (section 2.1): any order with at most C_v runs of each node v. This is the scope {OrderRule::free, c}.
///
/// Bounds hold for the selected scope. Phase 1 minimises max(peak, budget); it is skipped if a heuristic finds a
/// schedule within the budget. Phase 2 minimises the cost (section 2.4). Without a budget, finds the least peak, and
/// the least cost at that peak.
///
/// Reads these options from SolveOptions::own:
/// - `c`: C_v of every node v that is not pinned, >= 1
/// - `staged`: 0 or 1
/// - `threads`: number of threads of the engine; 0: one for each core
///
/// The model has O(C^2 m) constraints and O(C^2 m + C n) variables for n nodes, m inputs and C = c. Throws InputError
/// if the engine is missing or the model would be too large for it.
Solution moccasin(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
