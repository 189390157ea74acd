#include "cairn/solvers/order/internal/papers/node_sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "cairn/core/error.h"

namespace cairn::solvers {

namespace {

using core::Graph;
using core::InputError;
using core::kNoNode;
using core::NodeId;
using core::Schedule;
using core::ValueId;

/// Returns the number of nodes that Kahn's algorithm can run. If there is no cycle, these are all nodes.
std::size_t count_runnable(const NodeSumGraph& graph) {
  std::vector<std::size_t> missing(static_cast<std::size_t>(graph.node_count()));
  std::vector<NodeId> ready;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    missing[v] = graph.predecessors(v).size();
    if (missing[v] == 0) ready.push_back(v);
  }
  for (std::size_t i = 0; i < ready.size(); ++i) {
    for (const NodeId w : graph.successors(ready[i])) {
      if (--missing[w] == 0) ready.push_back(w);
    }
  }
  return ready.size();
}

}  // namespace

NodeSumGraph::NodeSumGraph(std::vector<std::int64_t> weights, std::vector<Edge> edges) : weights_(std::move(weights)) {
  const NodeId n = node_count();
  for (const auto& [from, to] : edges) {
    if (from < 0 || from >= n || to < 0 || to >= n)
      throw InputError(fmt::format("edge {} -> {}: there are only nodes 0 to {}", from, to, n - 1));
    if (from == to) throw InputError(fmt::format("node {} precedes itself; remove this self-loop", from));
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());

  const auto index = [&](auto&& key, auto&& value, std::vector<std::int32_t>& begin, std::vector<NodeId>& list) {
    begin.assign(static_cast<std::size_t>(n) + 1, 0);
    for (const Edge& edge : edges) ++begin[key(edge) + 1];
    for (NodeId v = 0; v < n; ++v) begin[v + 1] += begin[v];
    std::vector<std::int32_t> next(begin.begin(), begin.end() - 1);
    list.resize(edges.size());
    for (const Edge& edge : edges) list[next[key(edge)]++] = value(edge);
  };
  const auto from = [](const Edge& edge) { return edge.first; };
  const auto to = [](const Edge& edge) { return edge.second; };
  index(from, to, successor_begin_, successors_);
  index(to, from, predecessor_begin_, predecessors_);
  if (count_runnable(*this) != weights_.size()) throw InputError("the edges of a node-sum graph form a cycle");
}

bool is_schedule(const NodeSumGraph& graph, std::span<const NodeId> order) {
  if (order.size() != static_cast<std::size_t>(graph.node_count())) return false;
  std::vector<std::uint8_t> done(order.size(), 0);
  for (const NodeId v : order) {
    if (v < 0 || v >= graph.node_count() || done[v]) return false;
    for (const NodeId u : graph.predecessors(v)) {
      if (!done[u]) return false;
    }
    done[v] = 1;
  }
  return true;
}

std::vector<std::int64_t> profile(const NodeSumGraph& graph, std::span<const NodeId> order) {
  std::vector<std::int64_t> bytes{0};
  bytes.reserve(order.size() + 1);
  for (const NodeId v : order) bytes.push_back(bytes.back() + graph.weight(v));
  return bytes;
}

std::int64_t peak(const NodeSumGraph& graph, std::span<const NodeId> order) {
  std::int64_t bytes = 0, highest = 0;
  for (const NodeId v : order) highest = std::max(highest, bytes += graph.weight(v));
  return highest;
}

std::vector<NodeId> eager_schedule(const NodeSumGraph& graph, std::span<const NodeId> order) {
  const auto eager = [&](NodeId v) { return graph.weight(v) <= 0; };
  std::vector<std::size_t> missing(order.size());
  for (NodeId v = 0; v < graph.node_count(); ++v) missing[v] = graph.predecessors(v).size();
  std::vector<NodeId> result;
  result.reserve(order.size());
  // `result` also serves as a queue. For each of its entries, the successors of weight <= 0 whose predecessors are all
  // in `result` are appended.
  std::size_t looked_at = 0;
  const auto follow_up = [&] {
    for (; looked_at < result.size(); ++looked_at) {
      for (const NodeId w : graph.successors(result[looked_at])) {
        if (--missing[w] == 0 && eager(w)) result.push_back(w);
      }
    }
  };
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (missing[v] == 0 && eager(v)) result.push_back(v);
  }
  follow_up();
  for (const NodeId v : order) {
    if (eager(v)) continue;
    result.push_back(v);
    follow_up();
  }
  return result;
}

NodeSumReduction reduce_to_node_sum(const Graph& graph) {
  NodeSumReduction reduction;
  std::vector<std::int64_t> weights;
  std::vector<NodeSumGraph::Edge> edges;
  const auto add = [&](NodeId v, std::int64_t weight) {
    weights.push_back(weight);
    reduction.origin.push_back(v);
    return static_cast<NodeId>(weights.size() - 1);
  };
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    std::int64_t freed = graph.scratch(v);
    for (const ValueId x : graph.inputs(v)) {
      if (graph.readers(x).size() == 1 && !graph.value_kept(x)) freed += graph.value_size(x);
    }
    for (const ValueId x : graph.outputs(v)) {
      if (!graph.value_kept(x) && graph.readers(x).empty()) freed += graph.value_size(x);
    }
    reduction.start.push_back(add(v, graph.scratch(v) + graph.size(v)));
    reduction.finish.push_back(add(v, -freed));
    edges.emplace_back(reduction.start[v], reduction.finish[v]);
    for (const ValueId x : graph.outputs(v)) {
      const bool released = !graph.value_kept(x) && graph.readers(x).size() >= 2;
      reduction.release.push_back(released ? add(v, -graph.value_size(x)) : kNoNode);
    }
  }
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    for (const NodeId u : graph.predecessors(v)) edges.emplace_back(reduction.finish[u], reduction.start[v]);
    for (const ValueId x : graph.outputs(v)) {
      if (reduction.release[x] == kNoNode) continue;
      for (const NodeId reader : graph.readers(x)) edges.emplace_back(reduction.start[reader], reduction.release[x]);
    }
  }
  reduction.graph = NodeSumGraph(std::move(weights), std::move(edges));
  return reduction;
}

std::vector<NodeId> to_node_sum(const Graph& graph, const NodeSumReduction& reduction, const Schedule& schedule) {
  std::vector<std::size_t> unread(static_cast<std::size_t>(graph.value_count()));
  for (ValueId x = 0; x < graph.value_count(); ++x) unread[x] = graph.readers(x).size();
  std::vector<NodeId> order;
  order.reserve(reduction.origin.size());
  for (const NodeId v : schedule.steps) {
    order.push_back(reduction.start[v]);
    order.push_back(reduction.finish[v]);
    for (const ValueId x : graph.inputs(v)) {
      if (--unread[x] == 0 && reduction.release[x] != kNoNode) order.push_back(reduction.release[x]);
    }
  }
  return order;
}

Schedule from_node_sum(const NodeSumReduction& reduction, std::span<const NodeId> order) {
  Schedule schedule;
  for (const NodeId x : order) {
    const NodeId v = reduction.origin[x];
    if (x == reduction.start[v]) schedule.steps.push_back(v);
  }
  return schedule;
}

}  // namespace cairn::solvers
