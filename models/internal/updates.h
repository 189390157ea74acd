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
/// An update overwrites a weight that other nodes, the weight's readers, also read. So the update must run after all
/// readers, including the steps at which a schedule runs a reader again (recomputation). Backward nodes, the loss and
/// all other kept nodes are pinned, i.e. run exactly once. So only forward nodes that are not pinned run again. Such a
/// node runs again only because some node that has not run yet depends on it: a pinned node, or a forward node that
/// nothing reads. So it suffices that the update runs after certain end nodes. An end node is a backward node, the
/// loss, or a node that nothing reads, if a path of forward nodes leads to it from a reader of the weight. finish()
/// adds control edges from these end nodes to the update. Before that, it makes every update run after the previous
/// update. A node that runs before the previous update then also runs before this update, so few further edges are
/// needed.
class Updates {
 public:
  /// `loss` is the last forward node.
  Updates(ModelBuilder& model, core::NodeId loss);

  /// Adds the update of a weight whose gradient is complete. All readers of the weight must have been added before this
  /// call, unless gradients are clipped. `forward` is the forward node that the last contribution
  /// to the gradient belongs to.
  void add(std::int32_t weight, const core::Operand& gradient, core::NodeId forward);

  /// Adds the nodes that must come after all gradients. Pins the loss, kept nodes and backward nodes, and adds control
  /// edges. No node may be marked as kept after this call, because it would not be pinned. O(nodes + args).
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
