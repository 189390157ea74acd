// Divides a graph into layers (layers.h). A layer is one forward node with its backward nodes.

#include "cairn/solvers/remat/rotor/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "cairn/core/error.h"
#include "cairn/solvers/remat/repair/input_ranks.h"

namespace cairn::solvers {
namespace {

using core::Graph;
using core::NodeId;

/// Finds for each node the forward node of its layer. This is the node itself if it is a forward node.
std::vector<NodeId> owners(const Graph& graph, const std::vector<std::int32_t>& rank) {
  std::vector<NodeId> owner(static_cast<std::size_t>(graph.node_count()), core::kNoNode);
  for (const NodeId v : graph.input_order()) {
    if (!graph.backward(v)) {
      for (const NodeId u : graph.predecessors(v)) {
        if (graph.backward(u))
          throw core::InputError(
              fmt::format("the backward marks are inconsistent: '{}' is not marked backward, but "
                          "reads '{}', which is",
                          graph.name(v), graph.name(u)));
      }
      owner[v] = v;
      continue;
    }
    const NodeId marked = graph.forward(v);
    if (marked != core::kNoNode) {
      if (graph.backward(marked))
        throw core::InputError(
            fmt::format("the backward marks are inconsistent: '{}' belongs to '{}', which is itself "
                        "marked backward",
                        graph.name(v), graph.name(marked)));
      owner[v] = marked;
      continue;
    }
    NodeId latest = core::kNoNode, earliest = core::kNoNode;
    for (const NodeId u : graph.predecessors(v)) {
      const bool gradient = graph.backward(u);
      NodeId& best = gradient ? earliest : latest;
      const NodeId candidate = owner[u];
      if (best == core::kNoNode || (rank[candidate] < rank[best]) == gradient) best = candidate;
    }
    if (latest == core::kNoNode || (earliest != core::kNoNode && rank[earliest] < rank[latest])) latest = earliest;
    if (latest == core::kNoNode) {
      // A backward node that reads nothing belongs to the layer of the last forward node, because the backward nodes of
      // that layer run first.
      for (const NodeId u : graph.input_order()) {
        if (!graph.backward(u)) latest = u;
      }
    }
    if (latest == core::kNoNode)
      throw core::InputError("the backward marks are inconsistent: all nodes are marked backward");
    owner[v] = latest;
  }
  return owner;
}

}  // namespace

std::vector<Layer> layers_of(const Graph& graph) {
  const std::vector<std::int32_t> rank = input_ranks(graph);
  const std::vector<NodeId> owner = owners(graph, rank);
  // Count the forward nodes that must run before each forward node. An edge between two backward nodes demands that
  // their forward nodes run in the opposite order.
  std::vector<std::vector<NodeId>> later(owner.size());
  std::vector<std::int32_t> waiting(owner.size(), 0);
  const auto must_precede = [&](NodeId a, NodeId b) {
    if (a == b) return;
    later[a].push_back(b);
    ++waiting[b];
  };
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    for (const NodeId u : graph.predecessors(v)) {
      if (!graph.backward(v)) must_precede(u, v);
      if (graph.backward(u)) must_precede(owner[v], owner[u]);
    }
  }
  const auto comes_later = [&](NodeId a, NodeId b) { return rank[a] > rank[b]; };
  std::priority_queue<NodeId, std::vector<NodeId>, decltype(comes_later)> ready(comes_later);
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (owner[v] == v && waiting[v] == 0) ready.push(v);
  }
  std::vector<Layer> layers;
  std::vector<std::int32_t> layer_of(owner.size(), -1);
  while (!ready.empty()) {
    const NodeId v = ready.top();
    ready.pop();
    layer_of[v] = static_cast<std::int32_t>(layers.size());
    layers.push_back({{v}, {}});
    for (const NodeId w : later[v]) {
      if (--waiting[w] == 0) ready.push(w);
    }
  }
  for (const NodeId v : graph.input_order()) {
    if (layer_of[owner[v]] < 0) {
      for (const NodeId u : graph.predecessors(v)) {
        if (graph.backward(u) && owner[u] != owner[v] && layer_of[owner[u]] < 0)
          throw core::InputError(fmt::format(
              "the backward marks are inconsistent: '{}' belongs to '{}' and reads '{}', which belongs to '{}', but no "
              "order of the forward nodes is the reverse of that of the backward ones",
              graph.name(v), graph.name(owner[v]), graph.name(u), graph.name(owner[u])));
      }
    } else if (owner[v] != v) {
      layers[layer_of[owner[v]]].backward.push_back(v);
    }
  }
  if (std::any_of(owner.begin(), owner.end(), [&](NodeId v) { return layer_of[v] < 0; }))
    throw core::InputError(
        "the backward marks are inconsistent: no order of the forward nodes is the reverse of that of "
        "the backward ones");
  return layers;
}

}  // namespace cairn::solvers
