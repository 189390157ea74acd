#pragma once

#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/decomposition/path_decomposition.h"

namespace cairn::solvers {

/// A topological order v_1 ... v_n, called the spine, and a path decomposition in which v_i and v_{i+1} share a bag for
/// every i. Kumar et al., appendix A.2, say that such a graph has a long spine.
struct Spine {
  std::vector<core::NodeId> order;
  PathDecomposition decomposition;
  /// Whether bags were enlarged for the spine. If false, the graph has a Hamiltonian path, so the given decomposition
  /// is used unchanged.
  bool added = false;
};

/// Finds the graph's Hamiltonian path. Returns an empty list if there is none. O(n + m).
std::vector<core::NodeId> hamiltonian_path(const core::Graph& graph);

/// Adds a spine by Algorithm 2 of Kumar et al. (Theorem 8). For a valid decomposition of width w, the bags of the
/// result have at most 2 w + 3 nodes. The paper runs the algorithm on the graph itself, where the end of a path can lie
/// to the right of the next node's whole interval (docs/treewidth.md). This function runs it on the interval graph of
/// the decomposition instead, with edges directed along the input order. The function is not recursive, so the graph
/// can be deep. O(n w + sum of the bag sizes of the result).
Spine add_spine(const core::Graph& graph, const PathDecomposition& decomposition);

}  // namespace cairn::solvers
