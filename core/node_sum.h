#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

/// The node-sum model of Jin et al. (Definition 2.1), and Algorithm 3, the bridge to it from computation graphs.
namespace cairn::core {

/// A directed acyclic graph with signed weights in bytes. After a set of nodes has run, memory holds the sum of their
/// weights. Edges mean precedence only. Immutable.
class NodeSumGraph {
 public:
  using Edge = std::pair<NodeId, NodeId>;  ///< the two nodes of an edge: from, to

  NodeSumGraph() = default;
  /// Repeated edges are dropped. Throws InputError on an edge to an unknown node, a self-loop, or a cycle. O(n + m
  /// log).
  NodeSumGraph(std::vector<std::int64_t> weights, std::vector<Edge> edges);

  NodeId node_count() const { return static_cast<NodeId>(weights_.size()); }
  std::int64_t edge_count() const { return static_cast<std::int64_t>(successors_.size()); }
  std::int64_t weight(NodeId v) const { return weights_[v]; }
  std::span<const NodeId> predecessors(NodeId v) const {
    return {predecessors_.data() + predecessor_begin_[v], predecessors_.data() + predecessor_begin_[v + 1]};
  }
  std::span<const NodeId> successors(NodeId v) const {
    return {successors_.data() + successor_begin_[v], successors_.data() + successor_begin_[v + 1]};
  }

 private:
  std::vector<std::int64_t> weights_;
  std::vector<std::int32_t> predecessor_begin_{0}, successor_begin_{0};
  std::vector<NodeId> predecessors_, successors_;  ///< neighbours of each node, ascending
};

/// Whether `order` is a topological order of all nodes. O(n + m).
bool is_schedule(const NodeSumGraph& graph, std::span<const NodeId> order);

/// Memory over time, (0, w(1), w(1) + w(2), ...): node_count + 1 entries for a schedule, fewer for a partial one.
std::vector<std::int64_t> profile(const NodeSumGraph& graph, std::span<const NodeId> order);
/// The highest entry of the profile, never below 0.
std::int64_t peak(const NodeSumGraph& graph, std::span<const NodeId> order);

/// Moves each node of weight <= 0 to right after the last of its predecessors, or to the beginning if it has none
/// (Lemma 4.3). The result dominates `order`, which must be a schedule. O(n + m).
std::vector<NodeId> eager_schedule(const NodeSumGraph& graph, std::span<const NodeId> order);

/// The result of Algorithm 3 for a computation graph. Every node v becomes a start (+scratch + size) and a finish
/// (-scratch, and minus the inputs that v alone reads). An output that several nodes read is released by a third node
/// after they have all started. A kept output is never released: the paper has none, and this is as if one more reader
/// never ran.
struct NodeSumReduction {
  NodeSumGraph graph;
  std::vector<NodeId> start, finish;  ///< start and finish of each computation node
  std::vector<NodeId> release;        ///< release of each value of the computation graph; kNoNode: none
  std::vector<NodeId> origin;         ///< computation node that each node-sum node comes from
};
/// Runs Algorithm 3. O(n + m).
NodeSumReduction reduce_to_node_sum(const Graph& graph);

/// Convert a schedule of the computation graph to one of its node-sum graph, and back (Lemma 4.5 of Jin et al.). The
/// result dominates the schedule it is made from. A schedule of the computation graph must contain each node once.
/// O(n + m).
std::vector<NodeId> to_node_sum(const Graph& graph, const NodeSumReduction& reduction, const Schedule& schedule);
Schedule from_node_sum(const NodeSumReduction& reduction, std::span<const NodeId> order);

}  // namespace cairn::core
