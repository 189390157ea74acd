// Adds a spine to a path decomposition (spine.h). A path decomposition is a sequence of bags, which are sets of nodes.
// Each node is in an interval of consecutive bags. A spine is a topological order of all nodes in which any two
// consecutive nodes share a bag. In the interval graph of the decomposition, two nodes are joined if they share a bag.

#include "cairn/solvers/decomposition/spine.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace cairn::solvers {
namespace {

using core::NodeId;

/// Runs Algorithm 2 of Kumar et al. with a stack instead of recursion. The algorithm adds a root r, which is in all
/// bags and comes before all nodes; its number here is n.
class SpineAddition {
 public:
  SpineAddition(const core::Graph& graph, const PathDecomposition& decomposition)
      : n_(graph.node_count()),
        bag_count_(static_cast<std::int32_t>(decomposition.bags.size())),
        intervals_(bag_intervals(decomposition, n_)),
        original_(intervals_),
        unexplored_(n_, 0),
        readers_(n_) {
    intervals_.push_back({0, bag_count_ - 1});
    original_.push_back(intervals_.back());
    // Two nodes are joined in the interval graph if their intervals overlap. In this case, one of the intervals
    // contains the first bag of the other interval. So each pair is found once: at the bag where the later interval
    // begins.
    std::vector<std::int32_t> rank(n_);
    for (NodeId i = 0; i < n_; ++i) rank[graph.input_order()[i]] = i;
    for (std::int32_t b = 0; b < bag_count_; ++b) {
      const auto& bag = decomposition.bags[b];
      for (const NodeId v : bag) {
        if (original_[v].first != b) continue;
        for (const NodeId u : bag) {
          if (u == v || (original_[u].first == b && u > v)) continue;
          const auto [before, after] = rank[u] < rank[v] ? std::pair(u, v) : std::pair(v, u);
          readers_[before].push_back(after);
          ++unexplored_[after];
        }
      }
    }
  }

  Spine run() {
    Spine spine;
    spine.added = true;
    explore(n_, spine);
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      if (frame.next == frame.children.size()) {
        stack_.pop_back();
        continue;
      }
      const NodeId child = frame.children[frame.next++];
      // The path is the part of the spine that has been found so far. The interval of its last node ends before the
      // child's interval begins. This interval is extended to the child's first bag, so that the two nodes share a bag.
      // The algorithm as printed in the paper extends the interval to the last bag of a node u whenever the call for u
      // ends. Doing so would also add bags in which the path's last node is not needed.
      if (frame.next > 1) extend_end(original_[child].first);
      explore(child, spine);
    }
    intervals_.pop_back();
    spine.decomposition = decomposition_of(intervals_, bag_count_);
    return spine;
  }

 private:
  struct Frame {
    NodeId node;
    std::vector<NodeId> children;  ///< v_1, v_2, ... of Algorithm 2: the nodes to explore after `node`
    std::size_t next = 0;
  };

  void extend_end(std::int32_t bag) { intervals_[end_].last = std::max(intervals_[end_].last, bag); }

  void explore(NodeId v, Spine& spine) {
    Frame frame{v, {}, 0};
    if (v < n_) {
      spine.order.push_back(v);
      for (const NodeId reader : readers_[v]) {
        if (--unexplored_[reader] == 0) frame.children.push_back(reader);
      }
      readers_[v] = {};
    } else {
      for (NodeId u = 0; u < n_; ++u) {
        if (unexplored_[u] == 0) frame.children.push_back(u);
      }
    }
    end_ = v;
    std::sort(frame.children.begin(), frame.children.end(),
              [&](NodeId a, NodeId b) { return original_[a].last < original_[b].last; });
    stack_.push_back(std::move(frame));
  }

  NodeId n_, end_ = 0;  ///< the number of nodes, and the last node of the path so far
  std::int32_t bag_count_;
  std::vector<BagInterval> intervals_, original_;
  /// For each node, the number of its predecessors in the interval graph that are not explored yet. A predecessor is a
  /// neighbour that comes earlier in the input order.
  std::vector<std::int32_t> unexplored_;
  std::vector<std::vector<NodeId>> readers_;  ///< for each node, its successors in the interval graph
  std::vector<Frame> stack_;
};

}  // namespace

std::vector<NodeId> hamiltonian_path(const core::Graph& graph) {
  // A Hamiltonian path is a topological order in which all consecutive nodes are joined by edges. A graph with such an
  // order has no other topological order. So either the input order is the Hamiltonian path, or there is none.
  const auto order = graph.input_order();
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto before = graph.predecessors(order[i]);
    if (std::find(before.begin(), before.end(), order[i - 1]) == before.end()) return {};
  }
  return {order.begin(), order.end()};
}

Spine add_spine(const core::Graph& graph, const PathDecomposition& decomposition) {
  if (std::vector<NodeId> path = hamiltonian_path(graph); !path.empty() || graph.node_count() == 0) {
    return {std::move(path), decomposition, false};
  }
  return SpineAddition(graph, decomposition).run();
}

}  // namespace cairn::solvers
