#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::solvers {

/// A subgraph that the rest of the graph meets only at its ends (Definition 5.1). Paths from outside enter it at its
/// source or end at its sink; paths leave it only from its sink.
struct IsolatedSubgraph {
  core::NodeId source = core::kNoNode, sink = core::kNoNode;
  std::vector<core::NodeId> inner;  ///< the nodes between source and sink, ascending; at least one
};

/// Finds the isolated subgraphs of an acyclic graph, given by its edges, in which all nodes lie on paths from `source`
/// to `sink`. For each node with several outgoing edges there is one candidate, which ends at the first node that all
/// paths from that node pass. The candidate is returned if it is isolated.
///
/// `source` and `sink` stand for the graph's surroundings. So a subgraph may begin with only some of the edges of
/// `source`, and may end at `sink` even if other paths do. The subgraph from `source` to `sink` and subgraphs of more
/// than `most` inner nodes are left out. Smaller subgraphs come first. O((n + m) log n + sum of their sizes).
std::vector<IsolatedSubgraph> isolated_subgraphs(std::int32_t node_count,
                                                 std::span<const std::pair<core::NodeId, core::NodeId>> edges,
                                                 core::NodeId source, core::NodeId sink, std::size_t most);

/// Selects subgraphs that overlap earlier ones only at their ends, so that each can be replaced by a path while the
/// others stay.
std::vector<IsolatedSubgraph> disjoint_subgraphs(std::int32_t node_count, std::vector<IsolatedSubgraph> found);

}  // namespace cairn::solvers
