#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Makes the graph's input order a schedule, each node once: NoRemat of Kumar et al. O(n + m).
Solution no_remat(const core::Graph& graph, const SolveOptions& options);

/// Evicts greedily under a memory limit: GreedyRemat of Kumar et al., section 4 (XLA's heuristic). Walks the input
/// order. Where memory is above the limit, drops the value whose recomputation right before its next use frees most
/// (its size, less the inputs that must then stay), until memory fits or no drop helps. The recomputation itself, and
/// inputs that stay for it, may exceed the limit at other steps, so limits below the budget are tried as well, and the
/// best schedule is returned. O(limits * drops * live values).
Solution greedy_remat(const core::Graph& graph, const SolveOptions& options);

/// Recomputes from checkpoints as Chen et al. (2016) do, on the input order, extended to DAGs. The order up to the
/// first backward node (if nodes are not marked: up to the baseline's peak) is cut into segments of about equal size. A
/// value that only its own segment reads is dropped at the segment's end, and a segment is run again when a later part
/// first needs a value of it. Tries sqrt(l) segments first, l being the number of steps before the cut ends, then all
/// counts up to four times that, then a geometric sequence of counts. O(n * (n + m)) at worst.
Solution chen_remat(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
