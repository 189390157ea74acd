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

/// The isolated subgraphs of a graph whose source has several readers, one for each such source that has one: to the
/// node that all its paths meet at first. Smaller ones first. O((n + m) log n) and the sum of their sizes.
std::vector<IsolatedSubgraph> isolated_subgraphs(const core::Graph& graph);

/// The same for an acyclic graph given by its edges in which all nodes lie on paths from `source` to `sink`. These two
/// stand for the world outside, so a subgraph may begin with some of the edges of `source` only, and end at `sink`
/// whatever else does. No subgraph of more than `most` inner nodes, none that overlaps a smaller one but for its ends,
/// and not the one from `source` to `sink`.
std::vector<IsolatedSubgraph> disjoint_isolated_subgraphs(std::int32_t node_count,
                                                          std::span<const std::pair<core::NodeId, core::NodeId>> edges,
                                                          core::NodeId source, core::NodeId sink, std::size_t most);

/// Lemma 5.4: the graph with the subgraph replaced by the path of `order` (source, inner nodes, sink), with sizes and
/// scratch such that its internal profile stays (Lemma C.3). Nodes keep their ids and costs, so every schedule of the
/// result is one of `graph`, which is the inverse. If `order` is dominant, so is in `graph` what is dominant in
/// the result. Throws InputError if the order is not one of the subgraph, if an inner node is kept (a path cannot say
/// that), or if the sink takes over storage from outside (then what is dominant inside need not be outside). O(n + m).
core::Graph linearize(const core::Graph& graph, const IsolatedSubgraph& subgraph, std::span<const core::NodeId> order);

}  // namespace cairn::solvers
