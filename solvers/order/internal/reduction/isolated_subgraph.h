#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::solvers {

/// A subgraph that is connected to the rest of the graph only at its two ends, its source and its sink (Definition 5.1
/// of Jin et al.). Edges into an inner node come from the source or from other inner nodes. Edges out of an inner node,
/// or out of the source, lead to inner nodes or to the sink.
struct IsolatedSubgraph {
  core::NodeId source = core::kNoNode, sink = core::kNoNode;
  std::vector<core::NodeId> inner;  ///< the nodes between source and sink, ascending; at least one
};

/// Finds the isolated subgraphs of an acyclic graph, which is given by its edges. All nodes must lie on paths from
/// `source` to `sink`. Each node v with several outgoing edges gives one candidate, which begins at v and ends at the
/// first node that all paths from v have in common. The isolated candidates are returned.
///
/// `source` and `sink` are not nodes of a computation, but stand for what surrounds the graph. So a subgraph that
/// begins at `source` need not contain all edges of `source`. The result leaves out the whole graph and subgraphs with
/// more than `most` inner nodes. Smaller subgraphs come first. Takes O((n + m) log n + s) time for n nodes and m edges,
/// where s is the sum of the candidates' sizes in nodes.
std::vector<IsolatedSubgraph> isolated_subgraphs(std::int32_t node_count,
                                                 std::span<const std::pair<core::NodeId, core::NodeId>> edges,
                                                 core::NodeId source, core::NodeId sink, std::size_t most);

/// Selects subgraphs of `found`, in this order, that overlap previously selected ones at most at their ends. So each
/// selected subgraph can be replaced by a path without affecting the others.
std::vector<IsolatedSubgraph> disjoint_subgraphs(std::int32_t node_count, std::vector<IsolatedSubgraph> found);

}  // namespace cairn::solvers
