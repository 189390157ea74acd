#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/remat/hiremate/level.h"
#include "cairn/solvers/remat/rotor/layers.h"
#include "cairn/tests/reference/reference.h"

/// This file checks and measures a single option of a layer, by the definitions in tests/reference/reference.h. A layer
/// consists of forward nodes and their backward nodes, and an option is one way to run a layer.
namespace cairn::tests::level {

using core::Graph;
using core::NodeId;
using core::ValueId;
using solvers::Layer;
using solvers::LayerOption;
using solvers::OptionNeeds;
namespace reference = core::reference;

using Steps = std::vector<NodeId>;

inline void append(Steps& to, const Steps& more) { to.insert(to.end(), more.begin(), more.end()); }

/// The forward and the backward pass of an option as one sequence of steps. The rest of the graph runs between the
/// passes.
class Passes {
 public:
  Passes(const Graph& graph, const Layer& layer, const LayerOption& option) : graph_(graph), steps_(option.forward) {
    middle_ = static_cast<std::int64_t>(steps_.size());
    append(steps_, option.backward);
    inside_.assign(static_cast<std::size_t>(graph.node_count()), false);
    for (const Steps* part : {&layer.forward, &layer.backward}) {
      for (const NodeId v : *part) inside_[static_cast<std::size_t>(v)] = true;
    }
  }

  /// Returns whether every node of the layer runs, whether it runs after its inputs in the layer, and whether pinned
  /// nodes run only once.
  bool valid() const {
    std::set<NodeId> run;
    for (const NodeId v : steps_) {
      if (!inside(v)) return false;
      for (const NodeId u : graph_.predecessors(v)) {
        if (inside(u) && run.count(u) == 0) return false;
      }
      if (!run.insert(v).second && graph_.pinned(v)) return false;
    }
    return static_cast<std::ptrdiff_t>(run.size()) == std::count(inside_.begin(), inside_.end(), true);
  }

  /// Removes each repeated run whose values are not kept, and are read neither by a later step nor by the rest of the
  /// graph.
  void prune() {
    for (bool any = true; any;) {
      any = false;
      for (std::int64_t i = length() - 1; i >= 0; --i) {
        if (!removable(i)) continue;
        steps_.erase(steps_.begin() + i);
        if (i < middle_) --middle_;
        any = true;
      }
    }
  }

  OptionNeeds needs() const {
    OptionNeeds needs;
    for (std::int64_t i = 0; i < length(); ++i) {
      const NodeId v = steps_[i];
      needs.cost += graph_.cost(v);
      needs.peak = std::max(needs.peak, held(i) + reference::output_bytes(graph_, v) + graph_.scratch(v));
      needs.peak = std::max(needs.peak, held(i));
    }
    needs.between = between(true);
    return needs;
  }
  /// Returns the bytes in memory between the passes, without values that are kept or that nodes outside of the layer
  /// read.
  std::int64_t between_beside_rest() const { return between(false); }

 private:
  std::int64_t length() const { return static_cast<std::int64_t>(steps_.size()); }
  bool inside(NodeId v) const { return inside_[static_cast<std::size_t>(v)]; }
  bool leaves(ValueId x) const {
    const auto readers = graph_.readers(x);
    return graph_.value_kept(x) || std::any_of(readers.begin(), readers.end(), [&](NodeId v) { return !inside(v); });
  }
  /// Returns whether a step from `from` on reads the value x that step `made` makes, before the node of x runs again.
  bool read(std::int64_t made, ValueId x, std::int64_t from) const {
    for (std::int64_t i = made + 1; i < length(); ++i) {
      if (steps_[i] == steps_[made]) return false;
      if (i >= from && reference::reads(graph_, steps_[i], x)) return true;
    }
    return false;
  }
  std::int64_t between(bool with_leaving) const {
    std::int64_t bytes = 0;
    for (std::int64_t made = 0; made < middle_; ++made) {
      for (const ValueId x : graph_.outputs(steps_[made])) {
        if (read(made, x, middle_) && (with_leaving || !leaves(x))) bytes += graph_.value_size(x);
      }
    }
    return bytes;
  }
  /// Returns whether step `made` is the last run of its node in its pass.
  bool last(std::int64_t made) const {
    const std::int64_t end = made < middle_ ? middle_ : length();
    return std::find(steps_.begin() + made + 1, steps_.begin() + end, steps_[made]) == steps_.begin() + end;
  }
  /// Returns whether step `made` makes the value x that is kept or that the rest of the graph reads. For a forward
  /// node, this is the last run in the forward pass, and for a backward node, the last run in the backward pass.
  bool given(std::int64_t made, ValueId x) const {
    return leaves(x) && last(made) && (made < middle_) == !graph_.backward(steps_[made]);
  }
  bool removable(std::int64_t made) const {
    const NodeId v = steps_[made];
    if (std::count(steps_.begin(), steps_.end(), v) == 1) return false;
    for (const ValueId x : graph_.outputs(v)) {
      if (read(made, x, made) || given(made, x)) return false;
    }
    return true;
  }
  /// Returns the bytes that the layer holds at step i, without the step's own outputs: values that step i or a later
  /// step reads, and values of this pass that are kept or that the rest of the graph reads.
  std::int64_t held(std::int64_t i) const {
    std::int64_t bytes = 0;
    for (std::int64_t made = 0; made < i; ++made) {
      const bool same_pass = (made < middle_) == (i < middle_);
      for (const ValueId x : graph_.outputs(steps_[made])) {
        if (read(made, x, i) || (same_pass && given(made, x))) bytes += graph_.value_size(x);
      }
    }
    return bytes;
  }

  const Graph& graph_;
  Steps steps_;
  std::int64_t middle_ = 0;
  std::vector<bool> inside_;
};

}  // namespace cairn::tests::level
