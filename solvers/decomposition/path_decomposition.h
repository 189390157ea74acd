#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"

namespace cairn::solvers {

/// A path decomposition of the undirected graph under a computation graph: bags X_1 ... X_b in path order, here
/// numbered from 0. Every node and both ends of every edge are in some bag, and the bags of a node are consecutive.
struct PathDecomposition {
  std::vector<std::vector<core::NodeId>> bags;  ///< node sets in path order, each ascending, none empty
  std::int32_t width = -1;                      ///< size of the largest bag, minus one
};

/// INTERVAL(v) of Kumar et al., appendix A.1: the first and the last bag that contain a node.
struct BagInterval {
  std::int32_t first = 0, last = -1;
  bool contains(std::int32_t bag) const { return first <= bag && bag <= last; }
};
/// Finds the interval of each node. The decomposition must be valid. O(sum of bag sizes).
std::vector<BagInterval> bag_intervals(const PathDecomposition& decomposition, core::NodeId node_count);
/// Builds the bags of given intervals over bags 0 ... bag_count - 1, and leaves out bags contained in a neighbour.
/// O(sum of bag sizes).
PathDecomposition decomposition_of(std::span<const BagInterval> intervals, std::int32_t bag_count);

/// Builds a decomposition from a layout by vertex separation (Kinnersley 1992): the bag of a node contains it and every
/// node before it that has a neighbour at or after its place. The width is the layout's separation number, and the
/// least width over all layouts is the pathwidth. At most n bags. `layout`: every node once. O(n + m + sum of bag
/// sizes).
PathDecomposition decomposition_of_layout(const core::Graph& graph, std::span<const core::NodeId> layout);

/// Leaves out bags that are contained in a neighbour, until there are none: at most n bags remain, of the same width.
/// O(sum of bag sizes).
PathDecomposition drop_nested_bags(PathDecomposition decomposition);

/// Finds the path decomposition of smallest width among those of several layouts: the input order, a breadth-first one
/// from peripheral nodes, greedy ones that grow the smallest boundary, and the bags of a min-fill tree decomposition,
/// small branches before large ones. Then windows of the best layout are reordered optimally, where its boundary is
/// largest, until reordering brings nothing or `watch` expires. Exact up to kMostExactPathwidthNodes nodes. O(m log n)
/// a layout, plus the time of min_fill_decomposition(), and O(2^w w) a window of w = 10 nodes.
PathDecomposition path_decomposition(const core::Graph& graph, core::Stopwatch* watch = nullptr);

inline constexpr std::int64_t kMostBagEntries = std::int64_t{1} << 24;
inline constexpr core::NodeId kMostExactPathwidthNodes = 20;
/// Finds a path decomposition of least width, by dynamic programming over sets of nodes: O(2^n n) time, 2^n bytes.
/// Throws std::invalid_argument above kMostExactPathwidthNodes nodes.
PathDecomposition exact_path_decomposition(const core::Graph& graph);

/// Describes what is wrong with the decomposition and names the nodes; empty if it is valid. `spine`: a list of nodes
/// in which any two neighbours must share a bag as well. O(n + m + sum of bag sizes).
std::string check_path_decomposition(const core::Graph& graph, const PathDecomposition& decomposition,
                                     std::span<const core::NodeId> spine = {});

}  // namespace cairn::solvers
