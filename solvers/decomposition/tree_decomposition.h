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
  std::vector<std::vector<core::NodeId>> bags;  ///< each ascending
  std::vector<std::vector<std::int32_t>> tree;  ///< neighbours of each bag; a tree (a forest's trees are joined)
  std::int32_t width = -1;                      ///< largest bag, minus one
};

/// The decomposition of the minimum fill-in order (elimination_order), of at most n bags. Once the rule chooses a node
/// of more than `core_degree` neighbours, or `watch` expires, the remaining nodes become one bag: still a valid
/// decomposition, found in bounded time.
TreeDecomposition min_fill_decomposition(const core::Graph& graph, std::int32_t core_degree = kDefaultCoreDegree,
                                         core::Stopwatch* watch = nullptr);

/// Lemma 1 of Kumar et al.: merges bags with neighbours in the tree that contain them, until no bag is contained in a
/// neighbour. A decomposition of a graph of n >= 1 nodes then has at most n bags. The width stays. One pass over the
/// tree's edges, O(sum over them of the smaller bag * log of the larger).
TreeDecomposition merge_nested_bags(TreeDecomposition decomposition);

/// Says what is wrong with the decomposition; empty if it is valid. Checks that bags list nodes in ascending order,
/// that the tree is one, the three properties (every node in some bag, every edge within some, the bags of each node
/// connected), and the width. Names nodes by their names, bags by their numbers. O(sum of bag sizes + m log width, and
/// log width * the smaller bag for each edge of the tree).
std::string check_decomposition(const core::Graph& graph, const TreeDecomposition& decomposition);

/// The recursion of Algorithm 1, computed once: a balanced separator of a decomposition, then one of each remaining
/// component, and so on. Every graph node is in exactly one separator.
struct SeparatorTree {
  struct Part {
    std::vector<core::NodeId> separator;  ///< X*, without the nodes of the separators above it
    std::vector<std::int32_t> children;   ///< components that remain when X* is removed
    std::int32_t bags = 0;                ///< bags in this part's decomposition
    std::int32_t begin = 0, end = 0;      ///< preorder interval: this part and all parts below it
  };
  std::vector<Part> parts;         ///< in preorder; part 0 is the whole
  std::vector<std::int32_t> home;  ///< by node: the part whose separator contains it
};

/// The quantity that a separator halves.
enum class Balance {
  bags,  ///< the bags of a component: Lemma 3 (Jordan), a bag around which no component has more than half of them
  /// The bytes of the nodes that no separator above contains; or the number of bags, if halving the bytes would leave a
  /// component of more than 2/3 of them. So the tree's depth is O(log bags) either way.
  bytes
};

/// Separators of a decomposition. O(sum of bag sizes * log bags).
SeparatorTree separator_tree(const TreeDecomposition& decomposition, const core::Graph& graph,
                             Balance balance = Balance::bags);
/// Likewise, balanced by bags.
SeparatorTree separator_tree(const TreeDecomposition& decomposition, core::NodeId node_count);

}  // namespace cairn::solvers
