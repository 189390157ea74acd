#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

/// Implements the node-sum model of Jin et al., "New Tools for Peak Memory Scheduling" (Definition 2.1), and the
/// paper's Algorithm 3, which translates computation graphs into it. No solver calls these functions. Tests use them to
/// check statements about dominance.
namespace cairn::solvers {

/// A directed acyclic graph whose nodes have signed weights in bytes. After some nodes have run, the bytes in memory
/// are the sum of the weights of these nodes. Edges only order nodes and carry no data. Immutable.
class NodeSumGraph {
 public:
  using Edge = std::pair<core::NodeId, core::NodeId>;  ///< a node, and a node that must run after it

  NodeSumGraph() = default;
  /// Creates a graph with one node per weight. Repeated edges are dropped. Throws InputError on an edge to an unknown
  /// node, a self-loop, or a cycle. O(nodes + edges * log(edges)).
  NodeSumGraph(std::vector<std::int64_t> weights, std::vector<Edge> edges);

  core::NodeId node_count() const { return static_cast<core::NodeId>(weights_.size()); }
  std::int64_t edge_count() const { return static_cast<std::int64_t>(successors_.size()); }
  std::int64_t weight(core::NodeId v) const { return weights_[v]; }
  std::span<const core::NodeId> predecessors(core::NodeId v) const {
    return {predecessors_.data() + predecessor_begin_[v], predecessors_.data() + predecessor_begin_[v + 1]};
  }
  std::span<const core::NodeId> successors(core::NodeId v) const {
    return {successors_.data() + successor_begin_[v], successors_.data() + successor_begin_[v + 1]};
  }

 private:
  std::vector<std::int64_t> weights_;
  std::vector<std::int32_t> predecessor_begin_{0}, successor_begin_{0};
  std::vector<core::NodeId> predecessors_, successors_;  ///< neighbours of each node, ascending
};

/// Returns whether `order` is a topological order of all nodes. O(nodes + edges).
bool is_schedule(const NodeSumGraph& graph, std::span<const core::NodeId> order);

/// Returns the memory over time, (0, w(1), w(1) + w(2), ...), where w(i) is the weight of the i-th node of `order`. For
/// an order of k nodes, this has k + 1 entries. `order` need not contain all nodes.
std::vector<std::int64_t> profile(const NodeSumGraph& graph, std::span<const core::NodeId> order);
/// Returns the highest entry of the profile. It is at least 0, the first entry.
std::int64_t peak(const NodeSumGraph& graph, std::span<const core::NodeId> order);

/// Moves each node of weight <= 0 directly behind the predecessor that comes last in `order`, or to the beginning if
/// the node has no predecessors (Jin et al., Lemma 4.3). The result dominates `order` (core/dominance.h). `order` must
/// be a schedule. O(nodes + edges).
std::vector<core::NodeId> eager_schedule(const NodeSumGraph& graph, std::span<const core::NodeId> order);

/// The node-sum graph of a computation graph, by Algorithm 3 of Jin et al. Every node v becomes two nodes. The start of
/// v adds the scratch and the size of v. The finish of v subtracts the scratch of v, the size of each input that only v
/// reads, and the size of each output that nothing reads. For an output that several nodes read, there is a third node,
/// the release, which frees the output after all readers have started. A kept output is never subtracted, because it
/// stays in memory. (The paper has no kept outputs.)
struct NodeSumReduction {
  NodeSumGraph graph;
  std::vector<core::NodeId> start, finish;  ///< start and finish of each computation node
  std::vector<core::NodeId> release;        ///< release of each value of the computation graph; kNoNode if it has none
  std::vector<core::NodeId> origin;         ///< node of the computation graph that each node of `graph` comes from
};
/// Translates `graph` into a node-sum graph by Algorithm 3 of Jin et al. O(nodes + edges).
NodeSumReduction reduce_to_node_sum(const core::Graph& graph);

/// Converts a schedule of the computation graph to a schedule of its node-sum graph (Lemma 4.5 of Jin et al.). The
/// result dominates the given schedule. The schedule must contain each node once. O(nodes + edges).
std::vector<core::NodeId> to_node_sum(const core::Graph& graph, const NodeSumReduction& reduction,
                                      const core::Schedule& schedule);
/// Converts a schedule of the node-sum graph to a schedule of the computation graph (Lemma 4.5 of Jin et al.). The
/// result dominates the given schedule. O(nodes + edges).
core::Schedule from_node_sum(const NodeSumReduction& reduction, std::span<const core::NodeId> order);

}  // namespace cairn::solvers
