#pragma once

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"

/// The classes of graphs that Jin et al. have solvers for, each checked by its definition.
namespace cairn::tests {

template <class Holds>
std::vector<core::NodeId> nodes_where(const core::Graph& graph, const Holds& holds) {
  std::vector<core::NodeId> found;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (holds(v)) found.push_back(v);
  }
  return found;
}
inline std::vector<core::NodeId> sources(const core::Graph& graph) {
  return nodes_where(graph, [&](core::NodeId v) { return graph.inputs(v).empty(); });
}
inline std::vector<core::NodeId> sinks(const core::Graph& graph) {
  return nodes_where(graph, [&](core::NodeId v) { return graph.readers(v).empty(); });
}

/// The nodes that keep the graph from being a forest towards its roots, or from them.
inline std::vector<core::NodeId> read_twice(const core::Graph& graph) {
  return nodes_where(graph, [&](core::NodeId v) { return graph.readers(v).size() > 1; });
}
inline std::vector<core::NodeId> reading_twice(const core::Graph& graph) {
  return nodes_where(graph, [&](core::NodeId v) { return graph.inputs(v).size() > 1; });
}
inline bool is_in_forest(const core::Graph& graph) { return read_twice(graph).empty(); }
inline bool is_out_forest(const core::Graph& graph) { return reading_twice(graph).empty(); }

/// The nodes that keep the graph from being a pumpkin (Definition 8.1): further sources and sinks, and nodes between
/// the ends that are not on exactly one chain. A pumpkin has two ends.
inline std::vector<core::NodeId> not_of_pumpkin(const core::Graph& graph) {
  const std::size_t source_count = sources(graph).size(), sink_count = sinks(graph).size();
  return nodes_where(graph, [&](core::NodeId v) {
    const std::size_t in = graph.inputs(v).size(), out = graph.readers(v).size();
    const bool extra_source = in == 0 && source_count > 1, extra_sink = out == 0 && sink_count > 1;
    const bool crossing = (in > 1 && out > 0) || (out > 1 && in > 0), lonely = in == 0 && out == 0;
    return extra_source || extra_sink || crossing || lonely;
  });
}
inline bool is_pumpkin(const core::Graph& graph) { return graph.node_count() > 1 && not_of_pumpkin(graph).empty(); }

/// Adds a source and a sink around the graph and replaces every node with one predecessor and one successor by an edge,
/// where equal edges are one. Returns the nodes that remain. None remain exactly if that graph is series-parallel
/// (Valdes, Tarjan and Lawler 1982).
inline std::vector<core::NodeId> not_series_parallel(const core::Graph& graph) {
  const core::NodeId n = graph.node_count(), source = n, sink = n + 1;
  std::set<std::pair<core::NodeId, core::NodeId>> edges;
  for (core::NodeId v = 0; v < n; ++v) {
    for (const core::NodeId w : graph.readers(v)) edges.insert({v, w});
    if (graph.inputs(v).empty()) edges.insert({source, v});
    if (graph.readers(v).empty()) edges.insert({v, sink});
  }
  std::set<core::NodeId> left;
  for (core::NodeId v = 0; v < n; ++v) left.insert(v);
  for (bool changed = true; changed;) {
    changed = false;
    for (const core::NodeId v : std::vector<core::NodeId>(left.begin(), left.end())) {
      std::vector<core::NodeId> from, to;
      for (const auto& [a, b] : edges) {
        if (b == v) from.push_back(a);
        if (a == v) to.push_back(b);
      }
      if (from.size() != 1 || to.size() != 1) continue;
      edges.erase({from[0], v});
      edges.erase({v, to[0]});
      edges.insert({from[0], to[0]});
      left.erase(v);
      changed = true;
    }
  }
  return {left.begin(), left.end()};
}
inline bool is_series_parallel(const core::Graph& graph) { return not_series_parallel(graph).empty(); }

/// Definition 7.3: one source, one sink, and only the source has several readers.
inline bool is_starborescence(const core::Graph& graph) {
  if (graph.node_count() < 2 || sources(graph).size() != 1 || sinks(graph).size() != 1) return false;
  return nodes_where(graph, [&](core::NodeId v) { return !graph.inputs(v).empty() && graph.readers(v).size() > 1; })
      .empty();
}

}  // namespace cairn::tests
