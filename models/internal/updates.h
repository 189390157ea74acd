#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/op.h"
#include "cairn/models/builder.h"

namespace cairn::models {

/// Returns whether the optimizer's updates are nodes of the graph (sgd, adamw). The others only count as memory.
bool has_updates(const BuildOptions& options);

/// Appends the nodes of an optimizer that updates weights in place: an update of every weight and, if gradients are
/// clipped, the sum of squares of all gradients.
///
/// An update overwrites a weight that other nodes read. So it must run after all of them, also where a schedule runs
/// one of them again. A schedule runs a node again because another node still needs its output, or because the output
/// is kept and was freed before the end. All backward nodes, the loss and all other kept nodes are pinned, so only the
/// other forward nodes run again. Only a backward node, the loss, or a node that nothing reads can need them. So it
/// suffices that an update runs after every node of these three kinds that a reader of the weight reaches over forward
/// nodes. finish() adds control edges for that. It first makes every update run after the one before it, because few
/// other edges are needed then.
class Updates {
 public:
  /// `loss` is the last forward node.
  Updates(ModelBuilder& model, core::NodeId loss);

  /// Adds the update of a weight whose gradient is complete. The nodes that have been added before must contain all
  /// readers of the weight, unless gradients are clipped. `forward` is the forward node that the last contribution
  /// to the gradient belongs to.
  void add(std::int32_t weight, const core::Operand& gradient, core::NodeId forward);

  /// Adds what must come after all gradients, pins the loss, kept nodes and backward nodes, and adds control edges.
  /// Nodes that are kept later are not covered. O(nodes + args).
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
