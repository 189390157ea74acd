#pragma once

#include <utility>
#include <vector>

#include "cairn/solvers/order/internal/chain.h"
#include "cairn/solvers/order/internal/linearizer.h"
#include "cairn/solvers/order/internal/step_graph.h"

namespace cairn::solvers {

/// A step graph to be searched, which was made of forests and single nodes. `nodes` has the nodes that each step runs.
struct Expansion {
  StepGraph graph;
  std::vector<Ropes::Id> nodes;
};

/// Returns the nodes that the given order of the expansion's steps runs, in the order in which they run.
std::vector<core::NodeId> nodes_of(const Expansion& expansion, const std::vector<StepId>& order, const Ropes& ropes);
/// Turns an order of the expansion into a chain.
Chain chain_of(const Expansion& expansion, const std::vector<StepId>& order, Ropes& ropes);

class Expander {
 public:
  static constexpr StepId kOutside = -1;  ///< stands for a missing end of an edge

  explicit Expander(const std::vector<TreeBranch>& branches) : branches_(branches) {}

  /// Adds a step. Its output is freed once all steps have run to which connect() connects the step.
  StepId add(const StepGraph::Step& step, Ropes::Id nodes);
  void connect(StepId from, StepId to) {
    if (from != kOutside && to != kOutside) edges_.emplace_back(from, to);
  }
  void add_forest(const InForest& forest, StepId from, StepId to);
  Expansion finish() { return {StepGraph(std::move(steps_), std::move(edges_)), std::move(nodes_)}; }

 private:
  StepId add_path(StepId last, const Chain& chain);

  const std::vector<TreeBranch>& branches_;
  std::vector<StepGraph::Step> steps_;
  std::vector<StepGraph::Edge> edges_;
  std::vector<Ropes::Id> nodes_;
};

}  // namespace cairn::solvers
