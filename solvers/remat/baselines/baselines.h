#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Runs each node once in the graph's input order: NoRemat of Kumar et al. O(n + m).
Solution no_remat(const core::Graph& graph, const SolveOptions& options);

/// Evicts values greedily under a memory limit: GreedyRemat of Kumar et al., section 4 (the heuristic of XLA). Walks
/// through the input order. At a step above the limit, drops values until memory fits or no drop helps. The value to
/// drop is the one that frees most if it is recomputed right before its next use: its size less the bytes of the inputs
/// that must stay in memory for this. The recomputation and these inputs may exceed the limit at other steps. So limits
/// below the budget are tried as well, and the best schedule is returned. O(limits * drops * live values).
Solution greedy_remat(const core::Graph& graph, const SolveOptions& options);

/// Recomputes from checkpoints as Chen et al. (2016) do, on the input order, extended to DAGs. The forward part is
/// divided into segments of about equal size. It ends before the first node marked backward or, without marks, at the
/// peak of the baseline. A value that only its own segment reads is dropped at the end of the segment. When a later
/// part first needs a value of a segment, the whole segment runs again. Tries sqrt(l) segments first, where l is the
/// number of steps of the forward part. Then tries all counts up to four times that, then a geometric sequence of
/// counts. O(n * (n + m)) at worst.
Solution chen_remat(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
