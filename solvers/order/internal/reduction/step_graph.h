#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::solvers {

using StepId = std::int32_t;

/// Several lists of numbers, stored in one array. close() ends a list, whose numbers were appended to `items` before.
struct Lists {
  std::vector<std::int32_t> begin{0}, items;

  std::span<const std::int32_t> operator[](std::int32_t i) const {
    return {items.data() + begin[i], items.data() + begin[i + 1]};
  }
  std::int32_t count() const { return static_cast<std::int32_t>(begin.size()) - 1; }
  void close() { begin.push_back(static_cast<std::int32_t>(items.size())); }
};

/// Lists the successors of each node or, if `reversed`, its predecessors. Each list has the order of the edges.
Lists adjacency(std::int32_t node_count, std::span<const std::pair<std::int32_t, std::int32_t>> edges, bool reversed);

/// Steps to be ordered, with their effect on memory. When a step runs, memory first rises by `rise` and afterwards
/// falls by `drop` bytes. When all successors of the step have run, memory falls by another `output` bytes. Rise, drop
/// and output are >= 0. A step without successors has output 0. Immutable.
///
/// Several kinds of graphs have this form. In computation graphs, each node is a step. In node-sum graphs, each node is
/// a step without output. If a part of a graph was turned into a path (Lemma 5.4 of Jin et al.), each segment of the
/// path's memory profile is a step.
class StepGraph {
 public:
  struct Step {
    std::int64_t rise = 0, drop = 0, output = 0;
  };
  using Edge = std::pair<StepId, StepId>;

  StepGraph() = default;
  /// The edges must form no cycle; repeated edges are dropped. O(n + m log m) for n steps and m edges.
  StepGraph(std::vector<Step> steps, std::vector<Edge> edges);
  /// Makes a step of each node, with the node's number. If some successors of a node read one of its values and others
  /// do not, a separate step after the value's readers frees the value. Such a step, called a release, runs no node. If
  /// a node has a release as a successor, releases free all its values. Releases are numbered after the nodes. O(n + m)
  /// for n nodes and m edges.
  explicit StepGraph(const core::Graph& graph);

  StepId step_count() const { return static_cast<StepId>(steps_.size()); }
  std::int64_t edge_count() const { return static_cast<std::int64_t>(successors_.items.size()); }
  const Step& operator[](StepId s) const { return steps_[s]; }
  std::span<const StepId> predecessors(StepId s) const { return predecessors_[s]; }
  std::span<const StepId> successors(StepId s) const { return successors_[s]; }

  /// Turns an order of all nodes of the computation graph into an order of all steps. Each release runs as early as
  /// possible.
  std::vector<StepId> with_releases(std::span<const core::NodeId> nodes) const;
  /// Returns a topological order by Kahn's algorithm.
  std::vector<StepId> any_order() const;

 private:
  void index(std::vector<Edge> edges);

  std::vector<Step> steps_;
  Lists predecessors_, successors_;
};

inline std::vector<core::NodeId> nodes_among(std::vector<StepId> order, const core::Graph& graph) {
  std::erase_if(order, [&](StepId s) { return s >= graph.node_count(); });
  return order;
}

/// Stores a topological cut: a set of steps that contains all predecessors of its steps (Definition 3.2 of Jin et al.).
/// The set has one bit per step.
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

/// Returns the bytes in memory when exactly the steps of `cut` have run. O(n + m) for n steps and m edges.
std::int64_t memory(const StepGraph& graph, const Cut& cut);

/// Returns the bytes in memory while `order` runs after the cut `from`. The first entry is memory(graph, from). Two
/// entries follow for each step: the memory during the step and after it. The steps must be able to run in this order
/// after the cut. O(n + m) for n steps and m edges.
std::vector<std::int64_t> profile(const StepGraph& graph, std::span<const StepId> order, const Cut& from);
/// Returns the profile of an order that runs after the empty cut.
std::vector<std::int64_t> profile(const StepGraph& graph, std::span<const StepId> order);
std::int64_t peak(const StepGraph& graph, std::span<const StepId> order, const Cut& from);
std::int64_t peak(const StepGraph& graph, std::span<const StepId> order);

}  // namespace cairn::solvers
