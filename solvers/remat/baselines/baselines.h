#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Runs each node once in the graph's input order. This is NoRemat of Kumar et al. O(n + m).
Solution no_remat(const core::Graph& graph, const SolveOptions& options);

/// Evicts values greedily under a memory limit. This is GreedyRemat of Kumar et al., section 4 (the heuristic of XLA).
/// Goes through the input order. At a step above the limit, drops values until memory fits or no drop helps. The value
/// to drop is the one that frees most bytes if it is recomputed right before its next use. The bytes freed are its size
/// less the bytes of the inputs that must stay in memory for the recomputation. The recomputation and these inputs can
/// exceed the limit at other steps. So limits below the budget are tried as well, and the best schedule is returned.
/// O(limits * drops * live values).
Solution greedy_remat(const core::Graph& graph, const SolveOptions& options);

/// Recomputes from checkpoints as Chen et al. (2016) do, on the input order, extended to DAGs. The forward part is
/// divided into segments of about equal size. It ends before the first node marked backward or, if there are no such
/// marks, at the peak of the baseline. A value that only its own segment reads is dropped at the end of the segment.
/// When a later part needs a value of a segment for the first time, the whole segment runs again. Let l be the number
/// of steps of the forward part. First tries sqrt(l) segments. Afterwards tries all numbers of segments up to four
/// times that, and then a geometric sequence of larger numbers. O(n * (n + m)) at worst.
Solution chen_remat(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
