#pragma once

#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/decomposition/path_decomposition.h"

namespace cairn::solvers {

/// Holds a topological order v_1 ... v_n, called the spine, and a path decomposition in which v_i and v_{i+1} are
/// together in some bag for every i (Kumar et al., appendix A.2).
struct Spine {
  std::vector<core::NodeId> order;
  PathDecomposition decomposition;
  /// Whether bags were enlarged. False if the graph has a Hamiltonian path, because its consecutive nodes are together
  /// in a bag of any decomposition.
  bool added = false;
};

/// Returns the graph's Hamiltonian path, a directed path through all nodes, or an empty list if there is none. O(n + m)
/// for n nodes and m edges.
std::vector<core::NodeId> hamiltonian_path(const core::Graph& graph);

/// Adds a spine by Algorithm 2 of Kumar et al. (Theorem 8). For a valid decomposition of width w, the bags of the
/// result have at most 2 w + 3 nodes. The paper runs the algorithm on the graph itself, but then the algorithm can
/// place two nodes that share no bag next to each other (docs/treewidth.md). So this function uses the interval graph
/// of the decomposition. In this graph, any two nodes that share a bag are joined by an edge along the input order. The
/// function is not recursive, so that long paths do not overflow the stack. O(n w + sum of the result's bag sizes) for
/// n nodes.
Spine add_spine(const core::Graph& graph, const PathDecomposition& decomposition);

}  // namespace cairn::solvers
