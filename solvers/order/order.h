#pragma once

#include "cairn/solvers/common/solution.h"

/// Solvers for peak memory without recomputation. Each runs every node once. The exact ones throw InputError naming the
/// node that breaks their class. `Solution::schedule` is dominant where the comment says so: its (internal) profile
/// dominates that of every order.
namespace cairn::solvers {

struct OrderOptions : SolveOptions {
  int threads = 0;  ///< for tables and searches; 0: one a core
  int thread_count() const;
};

/// Solves any graph. Series-parallel parts and other isolated subgraphs become paths (Lemma 5.4), each by the best
/// exact method. The remainder is searched exactly if it is small, else by beam and local search until the limit.
/// Status optimal if the peak is proved least. Never worse than the input order.
Solution order(const core::Graph& graph, const OrderOptions& options);

/// Theorem 7.2: series-parallel graphs, 2^O(d log d) poly(n) for out-degree d. Several sources (or sinks) count as
/// readers (or inputs) of one more node of size 0. The schedule is dominant; it only has least peak where the key
/// orders are too many for time or memory and the exact search on the whole graph proves it.
Solution series_parallel(const core::Graph& graph, const OrderOptions& options);

/// Theorem 8.2: one source, one sink, and parallel chains between. O(2^d d n) for d chains; equal chains count once.
/// Dominant (internal profile).
Solution pumpkin(const core::Graph& graph, const OrderOptions& options);

/// Liu 1987: every node has at most one reader. O(n log n) if chains have few segments, as random ones do (about log
/// n); O(n) a merge at worst. Dominant. Takes forests too.
Solution in_tree(const core::Graph& graph, const OrderOptions& options);

/// Theorem 8.3: every node has at most one input. The gluing of a mirrored tree is implicit: the leaves' ends meet in
/// one node of size 0. O(2^d poly(n)). Least peak. Takes forests too.
Solution out_tree(const core::Graph& graph, const OrderOptions& options);

/// Bottleneck search over topological cuts for any graph: `exact_order` on the whole graph, nothing linearized. A
/// reference for the other solvers. If it ends early, returns the best order so far.
Solution exact(const core::Graph& graph, const OrderOptions& options);

}  // namespace cairn::solvers
