#pragma once

#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/decomposition/path_decomposition.h"

namespace cairn::solvers {

/// A topological order v_1 ... v_n (the spine) and a path decomposition in which any two neighbours of that order also
/// share a bag. Kumar et al., appendix A.2, say that such a graph has a long spine.
struct Spine {
  std::vector<core::NodeId> order;
  PathDecomposition decomposition;
  /// Whether bags were enlarged for the spine. False: the graph has a Hamiltonian path, so the given decomposition is
  /// used unchanged.
  bool added = false;
};

/// Finds the graph's Hamiltonian path. Returns an empty list if there is none. O(n + m).
std::vector<core::NodeId> hamiltonian_path(const core::Graph& graph);

/// Adds a spine by Algorithm 2 of Kumar et al. (Theorem 8). For a valid decomposition of width w the result has bags of
/// at most 2 w + 3 nodes. The algorithm runs on the interval graph of the decomposition, with edges directed along the
/// input order, instead of on the graph itself. On the graph itself, as the paper prints it, the end of a path can lie
/// to the right of the next node's whole interval (docs/treewidth.md). Works at any depth of the graph. O(n w + sum of
/// the bag sizes of the result).
Spine add_spine(const core::Graph& graph, const PathDecomposition& decomposition);

}  // namespace cairn::solvers
