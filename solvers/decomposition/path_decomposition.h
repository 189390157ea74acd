#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"

namespace cairn::solvers {

/// Holds a path decomposition of a computation graph without the directions of its edges. A path decomposition is a
/// sequence of bags (sets of nodes), which papers call X_1 ... X_b and which are numbered from 0 here. Every node is in
/// some bag, the two ends of every edge are together in some bag, and the bags of each node are consecutive.
struct PathDecomposition {
  std::vector<std::vector<core::NodeId>> bags;  ///< in path order; each bag is ascending and not empty
  std::int32_t width = -1;                      ///< size of the largest bag, minus one
};

/// Stores the first and the last bag that contain a node; INTERVAL(v) of Kumar et al., appendix A.1.
struct BagInterval {
  std::int32_t first = 0, last = -1;
  bool contains(std::int32_t bag) const { return first <= bag && bag <= last; }
};
/// Returns the interval of each node. The decomposition must be valid. O(sum of bag sizes).
std::vector<BagInterval> bag_intervals(const PathDecomposition& decomposition, core::NodeId node_count);
/// Builds the decomposition with `bag_count` bags in which each node is in the bags of its interval. Leaves out each
/// bag that is contained in a neighbouring bag. O(sum of bag sizes).
PathDecomposition decomposition_of(std::span<const BagInterval> intervals, std::int32_t bag_count);

/// Builds a decomposition from a layout, which is a list of all nodes in any order (Kinnersley 1992, vertex
/// separation). The bag of a node v contains v and every earlier node that is adjacent to v or to a node after v. The
/// least width that a layout gives is the pathwidth of the graph. The result has at most n bags. Takes O(n + m + sum of
/// bag sizes) time for n nodes and m edges.
PathDecomposition decomposition_of_layout(const core::Graph& graph, std::span<const core::NodeId> layout);

/// Removes bags that are contained in a neighbouring bag, until no such bag is left. At most n bags remain for n nodes,
/// and the width is unchanged. O(sum of bag sizes).
PathDecomposition drop_nested_bags(PathDecomposition decomposition);

/// Finds a path decomposition of small width. Takes the best of several layouts:
/// - the input order;
/// - a breadth-first order from peripheral nodes;
/// - greedy orders with a small boundary, where the boundary at a position of a layout is the set of nodes up to this
/// position that have neighbours after it;
/// - the nodes of a min-fill tree decomposition, bag by bag, with small branches of the tree before large ones.
///
/// Afterwards improves the best layout: at positions where the boundary is largest, puts w = 10 consecutive nodes into
/// their best order. Ends when no such change helps any more or `watch` expires. For graphs of at most
/// kMostExactPathwidthNodes nodes, calls exact_path_decomposition() instead if `watch` has enough work left for that.
/// For n nodes and m edges, takes O(m log n) per layout, O(2^w w) per reordering, and the time of
/// min_fill_decomposition().
PathDecomposition path_decomposition(const core::Graph& graph, core::Stopwatch* watch = nullptr);

/// If the bags of the best layout have more than this number of nodes in total, path_decomposition() returns one bag of
/// all nodes instead.
inline constexpr std::int64_t kMostBagEntries = std::int64_t{1} << 24;
inline constexpr core::NodeId kMostExactPathwidthNodes = 20;
/// Finds a path decomposition of least width by dynamic programming over sets of nodes. Takes O(2^n n) time and 2^n
/// bytes for n nodes. Throws std::invalid_argument for graphs of more than kMostExactPathwidthNodes nodes.
PathDecomposition exact_path_decomposition(const core::Graph& graph);

/// Describes what is wrong with the decomposition and names the nodes; the text is empty if the decomposition is valid.
/// Any two consecutive nodes of the list `spine` must be together in some bag. O(n + m + sum of bag sizes) for n nodes
/// and m edges.
std::string check_path_decomposition(const core::Graph& graph, const PathDecomposition& decomposition,
                                     std::span<const core::NodeId> spine = {});

}  // namespace cairn::solvers
