#pragma once

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"

/// These functions check by definition whether a graph is in one of the classes for which Jin et al., "New Tools for
/// Peak Memory Scheduling", give solvers. The numbers of definitions are those of the paper.
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

/// read_twice() returns the nodes with several readers, because of which a graph is not an in-forest (whose edges lead
/// towards the roots). reading_twice() returns the nodes with several inputs, because of which it is not an out-forest.
inline std::vector<core::NodeId> read_twice(const core::Graph& graph) {
  return nodes_where(graph, [&](core::NodeId v) { return graph.readers(v).size() > 1; });
}
inline std::vector<core::NodeId> reading_twice(const core::Graph& graph) {
  return nodes_where(graph, [&](core::NodeId v) { return graph.inputs(v).size() > 1; });
}
inline bool is_in_forest(const core::Graph& graph) { return read_twice(graph).empty(); }
inline bool is_out_forest(const core::Graph& graph) { return reading_twice(graph).empty(); }

/// Returns the nodes because of which the graph is not a pumpkin, i.e. not a set of disjoint chains from one source to
/// one sink (Definition 8.1). These are all sources or all sinks if there are several, isolated nodes, and inner nodes
/// that are on more than one chain.
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

/// Returns the nodes because of which the graph is not series-parallel. It adds a source before the graph and a sink
/// after it. Then it repeatedly replaces a node with one predecessor and one successor by an edge between these two,
/// and merges parallel edges. The graph is series-parallel exactly if no node remains (Valdes, Tarjan and Lawler 1982).
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

/// Returns whether the graph has one source and one sink, and only the source has several readers (Definition 7.3).
inline bool is_starborescence(const core::Graph& graph) {
  if (graph.node_count() < 2 || sources(graph).size() != 1 || sinks(graph).size() != 1) return false;
  return nodes_where(graph, [&](core::NodeId v) { return !graph.inputs(v).empty() && graph.readers(v).size() > 1; })
      .empty();
}

}  // namespace cairn::tests
