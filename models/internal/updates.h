#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/op.h"
#include "cairn/models/builder.h"

namespace cairn::models {

/// Returns whether the optimizer's updates are nodes of the graph (sgd, adamw). Of all other optimizers, only the
/// memory of their state is counted.
bool has_updates(const BuildOptions& options);

/// Appends the nodes of an optimizer that updates weights in place: an update of every weight and, if gradients are
/// clipped, the sum of squares of all gradients.
///
/// Every update runs after the previous one. GraphBuilder::build() adds the control edges that make each update run
/// after all readers of its weight. Backward nodes, the loss and all other kept nodes are pinned, i.e. run exactly
/// once, so that few such edges are needed.
class Updates {
 public:
  /// `loss` is the last forward node.
  Updates(ModelBuilder& model, core::NodeId loss);

  /// Adds the update of a weight whose gradient is complete. All readers of the weight must have been added before this
  /// call, unless gradients are clipped. `forward` is the forward node that the last contribution
  /// to the gradient belongs to.
  void add(std::int32_t weight, const core::Operand& gradient, core::NodeId forward);

  /// Adds the nodes that must come after all gradients. Pins the loss, kept nodes and backward nodes, and puts the
  /// updates in a row. O(nodes).
  void finish();

 private:
  struct Pending {
    std::int32_t weight;
    core::Operand gradient;
    core::NodeId forward;
  };

  void append_update(const Pending& pending);
  core::Operand add_state(std::int32_t weight, const char* name);

  ModelBuilder& model_;
  core::NodeId loss_;
  core::Operand rate_, step_;
  std::optional<core::Operand> squares_;  ///< sum of squares of the gradients so far; none: gradients are not clipped
  std::vector<Pending> pending_;
  std::vector<core::NodeId> updates_;
};

}  // namespace cairn::models
