#pragma once

#include "cairn/solvers/common/solution.h"

/// Declares solvers that find an order of least peak memory without recomputation: every node runs once. A solver for
/// one class of graphs throws InputError, which names an offending node, if the graph is not in this class. The
/// theorems and lemmas cited here are from Jin et al., "New Tools for Peak Memory Scheduling". In complexities, n is
/// the number of nodes and d the largest out-degree.
///
/// An order A dominates an order B if both can run side by side, each with pauses between its steps, so that A never
/// has more bytes in memory than B. An order that dominates all orders is called dominant; such an order has the least
/// peak. An internal profile is the memory from the end of the first step to the end of the last step
/// (core::internal_profile).
namespace cairn::solvers {

struct OrderOptions : SolveOptions {
  int threads = 0;  ///< number of threads for tables and searches; 0: one per core
  int thread_count() const;
};

/// Finds an order of low peak for any graph. First finds parts of the graph that are connected to the rest only at
/// their first and last node. Replaces each such part by a path: the nodes of the part in its dominant order (Lemma
/// 5.4). If the resulting graph is small, searches it exactly, otherwise by beam search and local search until the
/// limit. The status is optimal if the peak is proved to be the least. The peak of the answer is never higher than the
/// peak of the input order.
Solution order(const core::Graph& graph, const OrderOptions& options);

/// Solves series-parallel graphs exactly (Theorem 7.2) in 2^O(d log d) poly(n) time. If a graph has several sources, a
/// node of size 0 that they all read is added; if it has several sinks, a node that reads them all is added. The
/// schedule is dominant, unless the search for a dominant schedule takes too much time or memory. In that case, an
/// exact search on the whole graph proves the least peak, but the schedule that it finds need not be dominant.
Solution series_parallel(const core::Graph& graph, const OrderOptions& options);

/// Solves graphs that consist of one source, one sink, and parallel chains between them (Theorem 8.2). Takes O(2^d d n)
/// time for d different chains. The schedule's internal profile dominates the internal profiles of all other orders.
Solution pumpkin(const core::Graph& graph, const OrderOptions& options);

/// Solves in-trees, in which every node has at most one reader (Liu 1987), and forests of in-trees. The schedule is
/// dominant. Takes O(n log n) time if the memory profiles of paths have about log n segments (core::Segment), as in
/// random trees. In the worst case, each merge of two paths takes O(n) time.
Solution in_tree(const core::Graph& graph, const OrderOptions& options);

/// Solves out-trees, in which every node has at most one input (Theorem 8.3), and forests of out-trees, in O(2^d
/// poly(n)) time. The schedule has the least peak. The theorem joins a tree to its mirror image. This solver instead
/// adds one node of size 0 that reads all leaves, which has the same effect.
Solution out_tree(const core::Graph& graph, const OrderOptions& options);

/// Finds an order of least peak by an exact search on the whole graph (internal/search/exact.h). Unlike order(), it
/// does not replace parts of the graph by paths, so the other solvers can be checked against it. If the limit ends the
/// search, returns the best order found so far.
Solution exact(const core::Graph& graph, const OrderOptions& options);

}  // namespace cairn::solvers
