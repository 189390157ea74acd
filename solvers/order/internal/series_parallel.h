#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/order/internal/isolated_subgraph.h"

namespace cairn::solvers {

/// A series-parallel decomposition (Definition 7.1): a binary tree whose leaves are the graph's edges.
struct SeriesParallelTree {
  enum class Kind : std::uint8_t { edge, series, parallel };
  struct Part {
    Kind kind = Kind::edge;
    core::NodeId source = core::kNoNode, sink = core::kNoNode;
    std::int32_t first = -1, second = -1;  ///< parts; of a series in its order
  };
  std::vector<Part> parts;  ///< children before parents; the last one is the whole
};

/// Recognises and decomposes in linear time (Valdes, Tarjan, Lawler 1982). Several sources or sinks count as read from,
/// or read by, one more node: node_count() and node_count() + 1. Throws InputError naming a node where the graph is not
/// series-parallel. O(n + m).
SeriesParallelTree series_parallel_tree(const core::Graph& graph);

/// Algorithm 4 (LOCATESTARBORESCENCE): the last node in a topological order with several readers, and what lies between
/// it and the sink of the highest parallel composition that begins there: an isolated subgraph whose other nodes have
/// one reader each. Throws InputError on a path, which has none. O(n + m).
IsolatedSubgraph locate_starborescence(const core::Graph& graph, const SeriesParallelTree& tree);

}  // namespace cairn::solvers
