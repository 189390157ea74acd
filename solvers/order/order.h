#pragma once

#include "cairn/solvers/common/solution.h"

/// Solvers that find an order of least peak memory without recomputation: every node runs once. A solver for a class of
/// graphs throws InputError, which names an offending node, if the graph is not in that class.
///
/// An order dominates another one if both can run side by side, each with pauses, so that the first never holds more
/// memory than the second. An order that dominates all orders is called dominant; it has the least peak. A dominance is
/// internal if only the memory between the end of the first step and the end of the last step is compared
/// (core::internal_profile).
namespace cairn::solvers {

struct OrderOptions : SolveOptions {
  int threads = 0;  ///< number of threads for tables and searches; 0: one per core
  int thread_count() const;
};

/// Finds an order of low peak for any graph. First replaces series-parallel parts and other isolated subgraphs by paths
/// (Lemma 5.4), each ordered by the best exact method for it. Searches the remaining graph exactly if it is small.
/// Otherwise uses beam search and local search until the limit. The status is optimal if the peak is proved to be the
/// least. The answer is never worse than the input order.
Solution order(const core::Graph& graph, const OrderOptions& options);

/// Solves series-parallel graphs exactly (Theorem 7.2 of Jin et al.), in 2^O(d log d) poly(n) for out-degree d. If
/// there are several sources, a node of size 0 that they all read is added; if there are several sinks, a node that
/// reads them all. The schedule is dominant, with one exception. If there are too many key orders, which the theorem
/// enumerates, for the time or the memory, an exact search on the whole graph takes over. That search proves the least
/// peak, but its schedule need not be dominant.
Solution series_parallel(const core::Graph& graph, const OrderOptions& options);

/// Solves graphs that consist of one source, one sink, and parallel chains between them (Theorem 8.2 of Jin et al.).
/// O(2^d d n) for d chains, where equal chains count once. The schedule dominates all others in its internal profile.
Solution pumpkin(const core::Graph& graph, const OrderOptions& options);

/// Solves in-trees, in which every node has at most one reader (Liu 1987), and forests of in-trees. The schedule is
/// dominant. Chains are merged by the segments of their memory profiles. O(n log n) if a chain has about log n
/// segments, as in random trees. In the worst case a single merge takes O(n).
Solution in_tree(const core::Graph& graph, const OrderOptions& options);

/// Solves out-trees, in which every node has at most one input (Theorem 8.3 of Jin et al.), and forests of out-trees.
/// The theorem joins a tree to its mirror image. This solver adds one node of size 0 that reads all leaves, which has
/// the same effect. O(2^d poly(n)) for out-degree d. The schedule has least peak.
Solution out_tree(const core::Graph& graph, const OrderOptions& options);

/// Finds an order of least peak by an exact search over the topological cuts of the whole graph (exact_order()). Unlike
/// `order`, it does not first replace isolated subgraphs by paths. So it is a reference for the other solvers. If the
/// limit ends the search, returns the best order found so far.
Solution exact(const core::Graph& graph, const OrderOptions& options);

}  // namespace cairn::solvers
