#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::solvers {

using StepId = std::int32_t;

/// Steps to be ordered, with memory as the searches need it. Running a step raises memory by `rise`, then lowers it by
/// `drop`. Its `output` is freed as soon as all its successors have run; until then it is a part of what the step
/// leaves in memory (rise - drop). Computation graphs (a step a node), node-sum graphs (a step a node, without outputs)
/// and graphs with linearized parts (a step a segment of the part's dominant schedule: Lemma 5.4, Theorem 6.5) all have
/// this form. Rise, drop and output are bytes and >= 0; output > 0 only if there are successors. Immutable.
class StepGraph {
 public:
  struct Step {
    std::int64_t rise = 0, drop = 0, output = 0;
  };
  using Edge = std::pair<StepId, StepId>;  ///< an edge from the first step to the second

  StepGraph() = default;
  /// Edges must be acyclic; repeated edges are dropped. O(n + m log).
  StepGraph(std::vector<Step> steps, std::vector<Edge> edges);
  /// Makes each node one step of the same number. A value that some but not all successors of its node read is freed by
  /// a release: a separate step after the value's readers, which runs no node. The same holds for values that all
  /// successors of a node read, if a release comes after the node. Releases are numbered after the nodes. O(n + m).
  explicit StepGraph(const core::Graph& graph);

  StepId step_count() const { return static_cast<StepId>(steps_.size()); }
  std::int64_t edge_count() const { return static_cast<std::int64_t>(successors_.size()); }
  const Step& operator[](StepId s) const { return steps_[s]; }
  std::span<const StepId> predecessors(StepId s) const {
    return {predecessors_.data() + predecessor_begin_[s], predecessors_.data() + predecessor_begin_[s + 1]};
  }
  std::span<const StepId> successors(StepId s) const {
    return {successors_.data() + successor_begin_[s], successors_.data() + successor_begin_[s + 1]};
  }

  /// For a computation graph: turns an order of all its nodes into an order of all steps, with releases as early as
  /// possible.
  std::vector<StepId> with_releases(std::span<const core::NodeId> nodes) const;
  /// Finds a topological order by Kahn's algorithm, the lowest index first.
  std::vector<StepId> any_order() const;

 private:
  void index(std::vector<Edge> edges);

  std::vector<Step> steps_;
  std::vector<std::int32_t> predecessor_begin_{0}, successor_begin_{0};
  std::vector<StepId> predecessors_, successors_;
};

/// Selects the nodes from an order of a computation graph's steps (releases left out): its schedule.
inline std::vector<core::NodeId> nodes_among(std::vector<StepId> order, const core::Graph& graph) {
  std::erase_if(order, [&](StepId s) { return s >= graph.node_count(); });
  return order;
}

/// A topological cut: a set of steps that contains the predecessors of each of its steps (Definition 3.2). One bit a
/// step.
class Cut {
 public:
  explicit Cut(StepId step_count = 0, bool full = false);
  bool contains(StepId s) const { return (words_[s / 64] >> (s % 64) & 1) != 0; }
  void insert(StepId s) { words_[s / 64] |= std::uint64_t{1} << (s % 64); }
  void erase(StepId s) { words_[s / 64] &= ~(std::uint64_t{1} << (s % 64)); }
  std::int64_t count() const;
  std::span<const std::uint64_t> words() const { return words_; }
  bool operator==(const Cut&) const = default;

 private:
  std::vector<std::uint64_t> words_;
};

/// Computes the memory after exactly the steps of `cut` have run. O(n + m).
std::int64_t memory(const StepGraph& graph, const Cut& cut);

/// Computes the memory from the cut `from` on while `order` runs: (memory(from), during, after, during, after, ...), 2T
/// + 1 entries. `order` must be runnable from the cut. O(n + m).
std::vector<std::int64_t> profile(const StepGraph& graph, std::span<const StepId> order, const Cut& from);
std::vector<std::int64_t> profile(const StepGraph& graph, std::span<const StepId> order);
/// Returns the highest entry of profile().
std::int64_t peak(const StepGraph& graph, std::span<const StepId> order, const Cut& from);
std::int64_t peak(const StepGraph& graph, std::span<const StepId> order);

}  // namespace cairn::solvers
