#pragma once

#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/decomposition/path_decomposition.h"

namespace cairn::solvers {

/// A topological order v_1 ... v_n and a path decomposition in which any two neighbours of that order also share a bag.
/// Kumar et al., appendix A.2, call this a graph with a long spine.
struct Spine {
  std::vector<core::NodeId> order;
  PathDecomposition decomposition;
  /// Whether the spine was added; false: the graph has a Hamiltonian path, and the decomposition is the given one.
  bool added = false;
};

/// Finds the graph's Hamiltonian path; empty if there is none. O(n + m).
std::vector<core::NodeId> hamiltonian_path(const core::Graph& graph);

/// Adds a spine by Algorithm 2 of Kumar et al. (Theorem 8): the result has bags of at most 2 w + 3 nodes for a valid
/// decomposition of width w. Runs on the interval graph of the decomposition, its edges directed along the input order:
/// on the graph itself, as printed, the end of a path can lie right of the whole interval of the next node
/// (docs/treewidth.md). Any depth. O(n w + sum of the bag sizes of the result).
Spine add_spine(const core::Graph& graph, const PathDecomposition& decomposition);

}  // namespace cairn::solvers
