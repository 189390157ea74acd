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
  /// Neighbours of each bag in the tree. If the graph is not connected, edges between the trees of its components join
  /// them to one tree.
  std::vector<std::vector<std::int32_t>> tree;
  std::int32_t width = -1;  ///< size of the largest bag, minus one
};

/// Builds the decomposition of the minimum fill-in order (elimination_order()), which has at most n bags. When the rule
/// chooses a node with more than `core_degree` neighbours, or when `watch` expires, all remaining nodes become one bag.
/// This keeps the result valid and bounds the time.
TreeDecomposition min_fill_decomposition(const core::Graph& graph, std::int32_t core_degree = kDefaultCoreDegree,
                                         core::Stopwatch* watch = nullptr);

/// Merges each bag that is contained in a neighbouring bag of the tree into that neighbour, until there is no such bag
/// (Lemma 1 of Kumar et al.). For a graph of n >= 1 nodes, at most n bags remain. The width is unchanged. Makes one
/// pass over the tree's edges. An edge between bags of s and l nodes, s <= l, takes O(s log l).
TreeDecomposition merge_nested_bags(TreeDecomposition decomposition);

/// Returns a description of what is wrong with the decomposition. Returns an empty text if it is valid. Checks the
/// following:
/// - bags list nodes in ascending order;
/// - the edges form a tree;
/// - every node is in some bag, both ends of every edge share a bag, and the bags of each node are connected;
/// - the width is right.
///
/// The description uses the names of nodes and the numbers of bags. O(sum of bag sizes + m log width), plus, for each
/// edge of the tree, log width * the size of the smaller bag.
std::string check_decomposition(const core::Graph& graph, const TreeDecomposition& decomposition);

/// The separators that the recursion of Algorithm 1 of Kumar et al. uses, computed once. The first is a balanced
/// separator of the whole decomposition. When it is removed, several components remain; each of them has a separator of
/// its own, and so on. Every graph node is in exactly one separator.
struct SeparatorTree {
  struct Part {
    std::vector<core::NodeId> separator;  ///< nodes of the separator X* that are in no separator of a larger part
    /// Numbers of the parts below this one. These are the components that remain when X* is removed.
    std::vector<std::int32_t> children;
    std::int32_t bags = 0;            ///< number of bags in this part's decomposition
    std::int32_t begin = 0, end = 0;  ///< preorder interval: this part and all parts below it
  };
  std::vector<Part> parts;         ///< all parts in preorder; part 0 is the whole graph
  std::vector<std::int32_t> home;  ///< for each node, the number of the part whose separator contains it
};

/// The quantity that a separator halves.
enum class Balance {
  /// The number of bags of a component. By Lemma 3 (Jordan), there is a bag whose removal leaves no component with more
  /// than half of the bags.
  bags,
  /// The bytes of the nodes that are in no separator of a larger part. If halving the bytes would leave a component
  /// with more than 2/3 of the bags, the number of bags is halved instead. So the tree's depth is O(log bags) with
  /// either value of Balance.
  bytes
};

/// Computes the separators of a decomposition. O(sum of bag sizes * log bags).
SeparatorTree separator_tree(const TreeDecomposition& decomposition, const core::Graph& graph,
                             Balance balance = Balance::bags);
/// Computes the separators of a decomposition, balanced by bags.
SeparatorTree separator_tree(const TreeDecomposition& decomposition, core::NodeId node_count);

}  // namespace cairn::solvers
