#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::solvers {

/// A subgraph that is connected to the rest of the graph only at its ends (Definition 5.1). Paths from outside enter it
/// at its source or end at its sink. Paths leave it only from its sink.
struct IsolatedSubgraph {
  core::NodeId source = core::kNoNode, sink = core::kNoNode;
  std::vector<core::NodeId> inner;  ///< the nodes between source and sink, ascending; at least one
};

/// Finds the isolated subgraphs of an acyclic graph, which is given by its edges. All nodes must lie on paths from
/// `source` to `sink`. For each node with several outgoing edges there is one candidate. It ends at the first node that
/// all paths from that node have in common. A candidate is returned if it is isolated.
///
/// `source` and `sink` stand for the graph's surroundings. So a subgraph can begin with only some of the edges of
/// `source`, and can end at `sink` even if other paths end there too. The result leaves out the subgraph from `source`
/// to `sink`, and subgraphs with more than `most` inner nodes. Smaller subgraphs come first. O((n + m) log n + sum of
/// their sizes).
std::vector<IsolatedSubgraph> isolated_subgraphs(std::int32_t node_count,
                                                 std::span<const std::pair<core::NodeId, core::NodeId>> edges,
                                                 core::NodeId source, core::NodeId sink, std::size_t most);

/// Selects subgraphs that overlap earlier selected ones only at their ends. So each of them can be replaced by a path
/// without affecting the others.
std::vector<IsolatedSubgraph> disjoint_subgraphs(std::int32_t node_count, std::vector<IsolatedSubgraph> found);

}  // namespace cairn::solvers
