#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/decomposition/elimination.h"

namespace cairn::solvers {

/// Holds a tree decomposition of a computation graph without the directions of its edges. A tree decomposition is a
/// tree of bags (sets of nodes), numbered from 0. Every node is in some bag, the two ends of every edge are together in
/// some bag, and the bags of each node are connected in the tree.
struct TreeDecomposition {
  std::vector<std::vector<core::NodeId>> bags;  ///< node sets, each ascending
  /// Neighbours of each bag in the tree. There is one tree even if the graph is not connected.
  std::vector<std::vector<std::int32_t>> tree;
  std::int32_t width = -1;  ///< size of the largest bag, minus one
};

/// Builds the decomposition of the minimum fill-in order (elimination_order()). The decomposition has at most n bags
/// for a graph of n nodes. When the order reaches a node with more than `core_degree` neighbours, or when `watch`
/// expires, all remaining nodes become one bag. This rule limits the time that the function takes.
TreeDecomposition min_fill_decomposition(const core::Graph& graph, std::int32_t core_degree = kDefaultCoreDegree,
                                         core::Stopwatch* watch = nullptr);

/// Merges each bag that is contained in a neighbouring bag into that neighbour, until there is no such bag (Lemma 1 of
/// Kumar et al.). For a graph of n >= 1 nodes, at most n bags remain. The width is unchanged. Takes O(s log l) time for
/// each edge of the tree between bags of s and l nodes, s <= l.
TreeDecomposition merge_nested_bags(TreeDecomposition decomposition);

/// Describes what is wrong with the decomposition; the text is empty if it is valid. Checks the following:
/// - bags list nodes in ascending order;
/// - the edges form a tree;
/// - every node is in some bag, the ends of every edge are together in some bag, and the bags of each node are
/// connected;
/// - the width is right.
///
/// The description uses the names of nodes and the numbers of bags. Takes O(sum of bag sizes + m log width) time for m
/// edges of the graph, plus O(s log width) for each edge of the tree whose smaller bag has s nodes.
std::string check_decomposition(const core::Graph& graph, const TreeDecomposition& decomposition);

/// Holds the separators that the recursion of Algorithm 1 of Kumar et al. uses. A part is a connected set of bags.
/// Removing one of its bags, the separator, divides a part into smaller parts, each of which is divided in the same
/// way. The first part is the whole tree. A node can be in several of the removed bags. It then belongs only to the
/// separator that divides the largest part. So every node of the graph belongs to exactly one separator.
struct SeparatorTree {
  struct Part {
    /// Nodes of the bag X* that divides this part, except those that belong to separators of larger parts.
    std::vector<core::NodeId> separator;
    /// Numbers of the parts into which removing X* divides this part.
    std::vector<std::int32_t> children;
    std::int32_t bags = 0;            ///< number of bags in this part of the tree
    std::int32_t begin = 0, end = 0;  ///< numbers [begin, end) of this part and all parts within it
  };
  std::vector<Part> parts;         ///< all parts, each before the parts within it; part 0 is the whole tree
  std::vector<std::int32_t> home;  ///< for each node, the number of the part to whose separator the node belongs
};

enum class Balance : std::uint8_t {
  /// Separators halve the number of bags. By Lemma 3 (Jordan), there is always a bag whose removal leaves no part with
  /// more than half of the bags.
  bags,
  /// Separators halve the bytes of the nodes that belong to no separator of a larger part. If halving the bytes would
  /// leave a part with more than 2/3 of the bags, the number of bags is halved instead. So parts are nested O(log bags)
  /// deep in both cases.
  bytes
};

/// Computes the separators of a decomposition. O(sum of bag sizes * log(number of bags)).
SeparatorTree separator_tree(const TreeDecomposition& decomposition, const core::Graph& graph,
                             Balance balance = Balance::bags);
/// Computes the separators of a decomposition with Balance::bags, which needs no sizes of nodes.
SeparatorTree separator_tree(const TreeDecomposition& decomposition, core::NodeId node_count);

}  // namespace cairn::solvers
