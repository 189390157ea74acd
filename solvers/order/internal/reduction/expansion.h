#pragma once

#include <utility>
#include <vector>

#include "cairn/solvers/order/internal/chains/chain.h"
#include "cairn/solvers/order/internal/chains/linearizer.h"
#include "cairn/solvers/order/internal/reduction/step_graph.h"

namespace cairn::solvers {

/// Holds a step graph to be searched. It is made from a part of the reduced graph (reduction.h): from the vertices of
/// this part, and from the in-forests (linearizer.h) for which its edges stand. `nodes` has the nodes that each step
/// runs.
struct Expansion {
  StepGraph graph;
  std::vector<Ropes::Id> nodes;
};

std::vector<core::NodeId> nodes_of(const Expansion& expansion, const std::vector<StepId>& order, const Ropes& ropes);
/// Returns the chain of an order of the steps: the segments of its memory profile, with their nodes.
Chain chain_of(const Expansion& expansion, const std::vector<StepId>& order, Ropes& ropes);

class Expander {
 public:
  static constexpr StepId kOutside = -1;  ///< stands for a step outside the expansion; its edges are ignored

  explicit Expander(const std::vector<TreeBranch>& branches) : branches_(branches) {}

  /// Adds a step and returns its number. Its output is freed once all steps to which it is connected have run.
  StepId add(const StepGraph::Step& step, Ropes::Id nodes);
  void connect(StepId from, StepId to) {
    if (from != kOutside && to != kOutside) edges_.emplace_back(from, to);
  }
  /// Adds the steps of a forest between the steps of its source (`from`) and its sink (`to`).
  void add_forest(const InForest& forest, StepId from, StepId to);
  Expansion finish() { return {StepGraph(std::move(steps_), std::move(edges_)), std::move(nodes_)}; }

 private:
  /// Adds the segments of a chain as steps after `last`. Returns the last of them.
  StepId add_path(StepId last, const Chain& chain);

  const std::vector<TreeBranch>& branches_;
  std::vector<StepGraph::Step> steps_;
  std::vector<StepGraph::Edge> edges_;
  std::vector<Ropes::Id> nodes_;
};

}  // namespace cairn::solvers
