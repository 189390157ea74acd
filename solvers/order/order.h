#pragma once

#include "cairn/solvers/common/solution.h"

/// Solvers for the least peak memory without recomputation. Each runs every node once. The exact ones throw InputError,
/// which names a node that breaks their class. Comments say where `Solution::schedule` is dominant: its (internal)
/// memory profile dominates that of every order.
namespace cairn::solvers {

struct OrderOptions : SolveOptions {
  int threads = 0;  ///< threads for tables and searches; 0: one a core
  int thread_count() const;
};

/// Solves any graph. Series-parallel parts and other isolated subgraphs become paths (Lemma 5.4), each by the best
/// exact method. The remainder is searched exactly if it is small, else by beam and local search until the limit. The
/// status is optimal if the peak is proved least. Never worse than the input order.
Solution order(const core::Graph& graph, const OrderOptions& options);

/// Solves series-parallel graphs exactly (Theorem 7.2 of Jin et al.), in 2^O(d log d) poly(n) for out-degree d. Several
/// sources (or sinks) count as readers (or inputs) of one more node of size 0. The schedule is dominant; it only has
/// least peak where the key orders are too many for time or memory and the exact search on the whole graph proves it.
Solution series_parallel(const core::Graph& graph, const OrderOptions& options);

/// Solves graphs of one source, one sink, and parallel chains between (Theorem 8.2 of Jin et al.). O(2^d d n) for d
/// chains; equal chains count once. The schedule is dominant (internal profile).
Solution pumpkin(const core::Graph& graph, const OrderOptions& options);

/// Solves in-trees, in which every node has at most one reader (Liu 1987). O(n log n) if chains have few segments, as
/// random ones do (about log n); O(n) a merge at worst. The schedule is dominant. Takes forests too.
Solution in_tree(const core::Graph& graph, const OrderOptions& options);

/// Solves out-trees, in which every node has at most one input (Theorem 8.3 of Jin et al.). A mirrored tree is glued to
/// it implicitly: the leaves' ends meet in one node of size 0. O(2^d poly(n)). The schedule has least peak. Takes
/// forests too.
Solution out_tree(const core::Graph& graph, const OrderOptions& options);

/// Searches the topological cuts of the whole graph for an order of least peak (`exact_order`). Unlike `order`, does
/// not replace isolated subgraphs by paths first. A reference for the other solvers. If it ends early, returns the best
/// order so far.
Solution exact(const core::Graph& graph, const OrderOptions& options);

}  // namespace cairn::solvers
