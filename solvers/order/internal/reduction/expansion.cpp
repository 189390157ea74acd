// Makes step graphs of in-forests (linearizer.h). An in-forest is the part of a graph between a source and a sink. It
// consists of branches. The key of a branch is one of its steps: either the step at which other branches (its children)
// end, or the step that reads the source.

#include "cairn/solvers/order/internal/reduction/expansion.h"

#include <cstddef>

namespace cairn::solvers {

std::vector<core::NodeId> nodes_of(const Expansion& expansion, const std::vector<StepId>& order, const Ropes& ropes) {
  std::vector<core::NodeId> nodes;
  for (const StepId s : order) ropes.flatten(expansion.nodes[s], nodes);
  return nodes;
}

Chain chain_of(const Expansion& expansion, const std::vector<StepId>& order, Ropes& ropes) {
  Chain chain;
  const std::vector<std::int64_t> bytes = profile(expansion.graph, order);
  for (std::size_t i = 0; i < order.size(); ++i) {
    ChainSegment piece;
    piece.rise = bytes[2 * i + 1] - bytes[2 * i];
    piece.drop = bytes[2 * i + 1] - bytes[2 * i + 2];
    piece.nodes = expansion.nodes[order[i]];
    append(chain, piece, ropes);
  }
  return chain;
}

StepId Expander::add(const StepGraph::Step& step, Ropes::Id nodes) {
  steps_.push_back(step);
  nodes_.push_back(nodes);
  return static_cast<StepId>(steps_.size() - 1);
}

StepId Expander::add_path(StepId last, const Chain& chain) {
  for (const ChainSegment& piece : chain) {
    const StepId next = add({piece.rise, piece.drop, 0}, piece.nodes);
    connect(last, next);
    last = next;
  }
  return last;
}

void Expander::add_forest(const InForest& forest, StepId from, StepId to) {
  if (forest.direct) connect(from, to);
  std::vector<std::pair<BranchId, StepId>> waiting;  // each branch, and the step at which it ends
  for (const BranchId id : forest.branches) waiting.emplace_back(id, to);
  while (!waiting.empty()) {
    const auto [id, end] = waiting.back();
    waiting.pop_back();
    const TreeBranch& branch = branches_[id];
    // A branch with children begins at its key, where the children end. A branch without children begins at the source.
    StepId last = add_path(branch.children.empty() ? from : kOutside, branch.before);
    if (branch.has_key) {
      const StepId key = add({branch.key.rise, branch.key.drop, 0}, branch.key.nodes);
      connect(last, key);
      if (branch.reads_source) connect(from, key);
      for (const BranchId child : branch.children) waiting.emplace_back(child, key);
      last = add_path(key, branch.rest);
    }
    connect(last, end);
  }
}

}  // namespace cairn::solvers
