#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Finds schedules by constraint programming over retention intervals, on CP-SAT: MOCCASIN of Bartan et al. 2023. Each
/// node has C_v intervals. An interval consists of an event for the node's run, one for each of its outputs at that
/// output's last read, and a literal for its presence. Staged (section 2.3), the nodes first run in the input order and
/// nodes that run again before one of them do so in that order, once: the class {OrderRule::stages, c} that its bounds
/// are about. Otherwise any order of at most C_v runs a node (section 2.1): {OrderRule::free, c}. Phase 1 minimises
/// max(peak, budget), unless a heuristic's schedule in the class fits; phase 2 minimises the cost (section 2.4).
/// Without a budget, finds the least peak, then the least cost at that peak.
///
/// Reads own options from SolveOptions::own: `c` (C_v of every node that is not pinned, >= 1), `staged` (0 or 1) and
/// `threads` (of the engine; 0: one a core).
///
/// The model has O(C^2 m) constraints and O(C^2 m + C n) variables. Throws InputError if the engine is missing or the
/// model would be too large for it.
Solution moccasin(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
