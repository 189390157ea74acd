#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

/// The node-sum model of Jin et al. (Definition 2.1), and Algorithm 3, the bridge to it from computation graphs.
namespace cairn::core {

/// A directed acyclic graph with signed weights (bytes): having run a set of nodes, memory holds the sum of theirs.
/// Edges mean precedence alone. Immutable.
class NodeSumGraph {
 public:
  using Edge = std::pair<NodeId, NodeId>;  ///< from, to

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
  std::vector<NodeId> predecessors_, successors_;  ///< ascending for each node
};

/// Is `order` a topological order of all nodes? O(n + m).
bool is_schedule(const NodeSumGraph& graph, std::span<const NodeId> order);

/// (0, w(1), w(1) + w(2), ...): node_count + 1 entries for a schedule, fewer for a partial one.
std::vector<std::int64_t> profile(const NodeSumGraph& graph, std::span<const NodeId> order);
/// The highest entry of the profile: never below 0.
std::int64_t peak(const NodeSumGraph& graph, std::span<const NodeId> order);

/// Lemma 4.3: each node of weight <= 0 right after the last of its predecessors (one without any: at the beginning).
/// The result dominates `order`, which must be a schedule. O(n + m).
std::vector<NodeId> eager_schedule(const NodeSumGraph& graph, std::span<const NodeId> order);

/// What Algorithm 3 makes of a computation graph: every node v starts (+scratch + size) and finishes (-scratch, and
/// minus the inputs that v alone reads); where several nodes read it, its output is released by a third node after they
/// have all started. A kept output is never released (the paper has none: as if one more reader never ran).
struct NodeSumReduction {
  NodeSumGraph graph;
  std::vector<NodeId> start, finish;  ///< of each computation node
  std::vector<NodeId> release;        ///< of each value of the computation graph, kNoNode where it has none
  std::vector<NodeId> origin;         ///< the computation node behind each node-sum node
};
/// O(n + m).
NodeSumReduction reduce_to_node_sum(const Graph& graph);

/// Lemma 4.5, both ways; each result dominates the schedule it is made from. The schedule must hold each node once.
/// O(n + m).
std::vector<NodeId> to_node_sum(const Graph& graph, const NodeSumReduction& reduction, const Schedule& schedule);
Schedule from_node_sum(const NodeSumReduction& reduction, std::span<const NodeId> order);

}  // namespace cairn::core
