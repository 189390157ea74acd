#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// NoRemat of Kumar et al.: the graph's input order, each node once. O(n + m).
Solution no_remat(const core::Graph& graph, const SolveOptions& options);

/// GreedyRemat of Kumar et al., section 4 (XLA's heuristic). Walks the input order; where memory is above a limit,
/// drops the value whose recomputation right before its next use frees most (its size, less the inputs that must then
/// stay), until memory fits or nothing helps. The recomputation itself, and inputs that stay for it, may exceed the
/// limit at other steps, so limits below the budget are tried as well, and the best schedule is returned. O(limits *
/// drops * live values).
Solution greedy_remat(const core::Graph& graph, const SolveOptions& options);

/// Checkpointing of Chen et al. (2016) on the input order, extended to DAGs. The order up to the first backward node
/// (if nodes are not marked: up to the baseline's peak) is cut into segments of about equal size. A value that only its
/// own segment reads is dropped at the segment's end, and a segment is run again when a later part first needs a value
/// of it. Tries sqrt(n) segments first, then all counts up to four times that, then a geometric sequence of counts. O(n
/// * (n + m)) at worst.
Solution chen_remat(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
