#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <vector>

#include "cairn/core/graph.h"

/// Kumar et al. (2019): schedules and their memory (section 2.1), also if the nodes of a set W are known (section A.3).
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

/// prev(u, j): the latest step before j that runs u; -1 where there is none.
inline std::int64_t prev(const Sequence& steps, NodeId u, std::int64_t j) {
  while (--j >= 0 && steps[j] != u) {
  }
  return j;
}

/// U_i: the nodes that must be in memory at step i, for it or for a later step j. An input of step j that does not run
/// before j is not held. This happens only if a known node runs again, and the paper leaves that case open.
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

/// Definition 12: whether each step runs a known node, or a node whose inputs are known or ran before.
inline bool valid(const Graph& graph, const Sequence& sigma, const Nodes& known = {}) {
  Nodes ran = known;
  for (const NodeId u : sigma) {
    if (!known.contains(u) && !less(in(graph, u), ran).empty()) return false;
    ran.insert(u);
  }
  return true;
}

/// M_W(sigma): the largest memory at a step of sigma if W (`known`) runs before it. `free_of_charge` is not counted.
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

/// L(sigma): the total cost of the steps.
inline std::int64_t length(const Graph& graph, const Sequence& sigma) {
  std::int64_t sum = 0;
  for (const NodeId u : sigma) sum += graph.cost(u);
  return sum;
}

/// M_in, the largest total size of the inputs of a node, and M_max, the largest size of a node.
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

/// The nodes that every schedule must run even if no node reads them. If there is only one, it is the paper's f.
inline Nodes outputs(const Graph& graph) {
  Nodes result;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.required(v)) result.insert(v);
  }
  return result;
}

/// The topological order of all nodes that takes the least index first.
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

/// Returns `outputs` and all nodes of `within` from which a path inside `within` leads to one of them.
inline Nodes needed_for(const Graph& graph, const Nodes& outputs, const Nodes& within) {
  Nodes needed = outputs;
  for (std::size_t before = 0; before != needed.size();) {
    before = needed.size();
    for (const NodeId v : Nodes(needed)) needed = both(needed, common(in(graph, v), within));
  }
  return needed;
}

}  // namespace cairn::tests::kumar2019
