#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <vector>

#include "cairn/core/graph.h"

/// This file has schedules and their memory by Kumar et al. (2019): in general (section 2.1), and if the nodes of a set
/// W are known, i.e. are in memory before the schedule begins (section A.3).
namespace cairn::tests::kumar2019 {

using core::Graph;
using core::NodeId;
using Nodes = std::set<NodeId>;
using Sequence = std::vector<NodeId>;
using Bags = std::vector<Nodes>;

inline Nodes both(Nodes a, const Nodes& b) {
  a.insert(b.begin(), b.end());
  return a;
}
inline Nodes common(const Nodes& a, const Nodes& b) {
  Nodes result;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(result, result.end()));
  return result;
}
inline Nodes less(const Nodes& a, const Nodes& b) {
  Nodes result;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(result, result.end()));
  return result;
}
inline Nodes all_of(const Bags& bags) {
  Nodes result;
  for (const Nodes& bag : bags) result.insert(bag.begin(), bag.end());
  return result;
}
inline Nodes all_of(const Graph& graph) {
  Nodes result;
  for (NodeId v = 0; v < graph.node_count(); ++v) result.insert(v);
  return result;
}
inline Nodes in(const Graph& graph, NodeId v) { return {graph.predecessors(v).begin(), graph.predecessors(v).end()}; }
inline std::int64_t size_of(const Graph& graph, const Nodes& nodes) {
  std::int64_t bytes = 0;
  for (const NodeId v : nodes) bytes += graph.size(v);
  return bytes;
}
inline void extend(Sequence& sequence, const Sequence& by) { sequence.insert(sequence.end(), by.begin(), by.end()); }

/// Returns prev(u, j), the latest step before step j that runs u, or -1 if there is none.
inline std::int64_t prev(const Sequence& steps, NodeId u, std::int64_t j) {
  while (--j >= 0 && steps[j] != u) {
  }
  return j;
}

/// Returns U_i, the nodes that must be in memory at step i because step i or a later step j needs them. An input of
/// step j that has not run before j does not count. This happens only if a known node runs again, and the paper leaves
/// this case open.
inline Nodes held_at(const Graph& graph, const Sequence& steps, std::int64_t i) {
  Nodes held = both({steps[i]}, in(graph, steps[i]));
  for (std::int64_t j = i + 1; j < static_cast<std::int64_t>(steps.size()); ++j) {
    for (const NodeId u : graph.predecessors(steps[j])) {
      const std::int64_t before = prev(steps, u, j);
      if (before >= 0 && before <= i) held.insert(u);
    }
  }
  return held;
}

/// Returns whether sigma is valid by Definition 12: each step runs a known node, or a node whose inputs are known or
/// have run.
inline bool valid(const Graph& graph, const Sequence& sigma, const Nodes& known = {}) {
  Nodes ran = known;
  for (const NodeId u : sigma) {
    if (!known.contains(u) && !less(in(graph, u), ran).empty()) return false;
    ran.insert(u);
  }
  return true;
}

/// Returns M_W(sigma), the largest memory at a step of sigma if the nodes W (`known`) have run before. Nodes in
/// `free_of_charge` are not counted.
inline std::int64_t memory(const Graph& graph, const Sequence& sigma, const Nodes& known = {},
                           const Nodes& free_of_charge = {}) {
  Sequence steps(known.begin(), known.end());
  extend(steps, sigma);
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(steps.size()); ++i) {
    if (known.contains(steps[i])) continue;
    most = std::max(most, size_of(graph, less(held_at(graph, steps, i), free_of_charge)));
  }
  return most;
}

/// Returns L(sigma), the total cost of the steps.
inline std::int64_t length(const Graph& graph, const Sequence& sigma) {
  std::int64_t sum = 0;
  for (const NodeId u : sigma) sum += graph.cost(u);
  return sum;
}

/// largest_inputs() returns M_in, the largest total size of the inputs of a node. largest_size() returns M_max, the
/// largest size of a node.
inline std::int64_t largest_inputs(const Graph& graph) {
  std::int64_t most = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) most = std::max(most, size_of(graph, in(graph, v)));
  return most;
}
inline std::int64_t largest_size(const Graph& graph) {
  std::int64_t most = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) most = std::max(most, graph.size(v));
  return most;
}

/// Returns the nodes that every schedule must run, whether or not a node reads them. If there is only one such node, it
/// is the node f of the paper.
inline Nodes outputs(const Graph& graph) {
  Nodes result;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.required(v)) result.insert(v);
  }
  return result;
}

/// Returns the topological order of all nodes that always takes the node of lowest index next.
inline Sequence topological(const Graph& graph) {
  Sequence order;
  while (static_cast<NodeId>(order.size()) < graph.node_count()) {
    const Nodes done(order.begin(), order.end());
    NodeId next = 0;
    while (done.contains(next) || !less(in(graph, next), done).empty()) ++next;
    order.push_back(next);
  }
  return order;
}

/// Returns `outputs`, and all nodes of `within` from which a path inside of `within` leads to a node in `outputs`.
inline Nodes needed_for(const Graph& graph, const Nodes& outputs, const Nodes& within) {
  Nodes needed = outputs;
  for (std::size_t before = 0; before != needed.size();) {
    before = needed.size();
    for (const NodeId v : Nodes(needed)) needed = both(needed, common(in(graph, v), within));
  }
  return needed;
}

}  // namespace cairn::tests::kumar2019
