#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct MoccasinOptions : SolveOptions {
  std::int32_t c = 2;  ///< C_v of every node v that is not pinned, >= 1; pinned nodes run once
  /// Which of the two sets of schedules is searched if the scope allows any order.
  bool staged = true;
  int threads = 0;  ///< number of threads of the engine; 0: one for each core
};

/// Finds schedules by constraint programming over retention intervals, with the engine CP-SAT. This is MOCCASIN of
/// Bartan et al. 2023. A node v can run at most C_v times. Each of these runs has an event at which the node runs, an
/// event for each output at which the output is read for the last time, and a literal that says whether the run takes
/// place. The retention interval of an output, during which it takes memory, lies between two of these events.
///
/// MoccasinOptions::staged selects one of two sets of schedules:
/// - Staged (section 2.3): the first runs of the nodes are in the input order. Between two first runs, nodes run again
///   in that order, each at most once. This is the scope {OrderRule::stages, c}.
/// - Not staged (section 2.1): any order, with at most C_v runs of each node v. This is the scope {OrderRule::free, c}.
///
/// Bounds hold for the selected scope. The search has two phases (section 2.4). Phase 1 minimises max(peak, budget). It
/// is skipped if a heuristic has found a schedule within the budget. Phase 2 minimises the cost within the budget.
/// Without a budget, phase 1 finds the least peak, and phase 2 the least cost at that peak.
///
/// The model has O(c^2 m) constraints and O(c^2 m + c n) variables for n nodes and m inputs in all. Throws InputError
/// if the engine is missing or the model would be too large for it.
Solution moccasin(const core::Graph& graph, const MoccasinOptions& options);

}  // namespace cairn::solvers
