#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::solvers {

/// A subgraph that the rest of the graph meets at its ends alone (Definition 5.1): paths enter it at its source (or end
/// at its sink), and leave it from its sink.
struct IsolatedSubgraph {
  core::NodeId source = core::kNoNode, sink = core::kNoNode;
  std::vector<core::NodeId> inner;  ///< the nodes between, ascending; at least one
};

/// The isolated subgraphs of an acyclic graph given by its edges in which all nodes lie on paths from `source` to
/// `sink`: for each node with several edges outwards the one to the node that all its paths meet at first, if it is
/// isolated. The two ends stand for the world outside, so a subgraph may begin with some of the edges of `source` only,
/// and end at `sink` whatever else does. None of more than `most` inner nodes, and not the one from `source` to `sink`.
/// Smaller ones first. O((n + m) log n) and the sum of their sizes.
std::vector<IsolatedSubgraph> isolated_subgraphs(std::int32_t node_count,
                                                 std::span<const std::pair<core::NodeId, core::NodeId>> edges,
                                                 core::NodeId source, core::NodeId sink, std::size_t most);

/// Those of them that overlap no earlier one but for the ends, so that each can be replaced by a path while the others
/// stay.
std::vector<IsolatedSubgraph> disjoint_subgraphs(std::int32_t node_count, std::vector<IsolatedSubgraph> found);

}  // namespace cairn::solvers
