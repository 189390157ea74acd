#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"

namespace cairn::solvers {

/// A tree decomposition of the undirected graph under a computation graph. Bags are numbered from 0.
struct TreeDecomposition {
  std::vector<std::vector<core::NodeId>> bags;  ///< each ascending, none empty
  std::vector<std::vector<std::int32_t>> tree;  ///< neighbours of each bag; a tree (a forest's trees are joined)
  std::int32_t width = -1;                      ///< largest bag, minus one
};

/// The minimum fill-in heuristic (Bodlaender & Koster 2010), ties by degree, then by index; then Lemma 1 of Kumar et
/// al.: adjacent bags of which one holds the other are merged, so that there are at most n bags. Between nodes of
/// large degree (above 48) the fill is estimated, not counted. Once every node that is left has more than `core_degree`
/// neighbours, what is left becomes one bag: still a valid decomposition, found in bounded time; the same happens when
/// `watch` expires. O(n d^3) for elimination degrees up to d.
TreeDecomposition min_fill_decomposition(const core::Graph& graph, std::int32_t core_degree = 192,
                                         core::Stopwatch* watch = nullptr);

/// What is wrong with the decomposition (its three properties), or empty. O(sum of bag sizes * log + m * bags of a
/// node).
std::string check_decomposition(const core::Graph& graph, const TreeDecomposition& decomposition);

/// The recursion of Algorithm 1, computed once: balanced separators of a decomposition, of what remains of each of its
/// components, and so on. Every graph node is in exactly one separator.
struct SeparatorTree {
  struct Part {
    std::vector<core::NodeId> separator;  ///< X*, less the nodes of the separators above it
    std::vector<std::int32_t> children;   ///< components that remain when X* is removed
    std::int32_t bags = 0;                ///< bags in this part's decomposition
    std::int32_t begin = 0, end = 0;      ///< preorder interval: this part and all below it
  };
  std::vector<Part> parts;         ///< in preorder; part 0 is the whole
  std::vector<std::int32_t> home;  ///< of each node: the part whose separator holds it
};

/// Lemma 3 (Jordan): a bag whose removal leaves components of at most half the bags. O(bags log bags * width).
SeparatorTree separator_tree(const TreeDecomposition& decomposition, core::NodeId node_count);

}  // namespace cairn::solvers
