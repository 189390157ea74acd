#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/decomposition/elimination.h"

namespace cairn::solvers {

/// A tree decomposition of the undirected graph under a computation graph. Bags are numbered from 0.
struct TreeDecomposition {
  std::vector<std::vector<core::NodeId>> bags;  ///< node sets, each ascending
  /// Neighbours of each bag in the tree (the trees of a forest are joined to one).
  std::vector<std::vector<std::int32_t>> tree;
  std::int32_t width = -1;  ///< size of the largest bag, minus one
};

/// Finds the decomposition of the minimum fill-in order (elimination_order), of at most n bags. When the rule chooses a
/// node of more than `core_degree` neighbours, or `watch` expires, the remaining nodes become one bag: the result is
/// still a valid decomposition, found in bounded time.
TreeDecomposition min_fill_decomposition(const core::Graph& graph, std::int32_t core_degree = kDefaultCoreDegree,
                                         core::Stopwatch* watch = nullptr);

/// Merges bags with neighbours in the tree that contain them, until no bag is contained in a neighbour (Lemma 1 of
/// Kumar et al.). A decomposition of a graph of n >= 1 nodes then has at most n bags. The width stays. One pass over
/// the tree's edges, O(sum over them of the smaller bag * log of the larger).
TreeDecomposition merge_nested_bags(TreeDecomposition decomposition);

/// Describes what is wrong with the decomposition; empty if it is valid. Checks that bags list nodes in ascending
/// order, that the edges form a tree, the three properties (every node in some bag, every edge within some, the bags of
/// each node connected), and the width. Names nodes by their names, bags by their numbers. O(sum of bag sizes + m log
/// width, and log width * the smaller bag for each edge of the tree).
std::string check_decomposition(const core::Graph& graph, const TreeDecomposition& decomposition);

/// The separators that the recursion of Algorithm 1 of Kumar et al. meets, computed once: a balanced separator of a
/// decomposition, then one of each remaining component, and so on. Every graph node is in exactly one separator.
struct SeparatorTree {
  struct Part {
    std::vector<core::NodeId> separator;  ///< nodes of the separator X*, without the nodes of the separators above it
    std::vector<std::int32_t> children;   ///< numbers of the parts below: the components that remain when X* is removed
    std::int32_t bags = 0;                ///< number of bags in this part's decomposition
    std::int32_t begin = 0, end = 0;      ///< preorder interval: this part and all parts below it
  };
  std::vector<Part> parts;         ///< all parts in preorder; part 0 is the whole graph
  std::vector<std::int32_t> home;  ///< number of the part whose separator contains the node; by node
};

/// The quantity that a separator halves.
enum class Balance {
  /// Number of bags of a component: Lemma 3 (Jordan), a bag around which no component has more than half of them.
  bags,
  /// Bytes of the nodes that no separator above contains. If halving the bytes would leave a component of more than 2/3
  /// of the bags, the number of bags is halved instead, so the tree's depth is O(log bags) either way.
  bytes
};

/// Computes the separators of a decomposition. O(sum of bag sizes * log bags).
SeparatorTree separator_tree(const TreeDecomposition& decomposition, const core::Graph& graph,
                             Balance balance = Balance::bags);
/// Computes the separators of a decomposition, balanced by bags.
SeparatorTree separator_tree(const TreeDecomposition& decomposition, core::NodeId node_count);

}  // namespace cairn::solvers
