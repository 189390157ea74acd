#pragma once

#include <string>

#include "cairn/core/graph.h"

namespace cairn::models {

/// Options of to_operations().
struct OperationOptions {
  /// The update of every weight. `none` is plain gradient descent, the others are `momentum` and `adam`.
  std::string optimizer = "none";
  /// Adds half the squared norm of every weight of two axes and more to the loss, and its gradient to theirs.
  bool weight_decay = false;
  /// Keeps the weights' gradients, which are otherwise freed once the update has read them.
  bool keep_gradients = false;
  core::Roofline roofline = {};  ///< the cost of each operation
};

/// Rewrites the training step `layers` in the elementary operations that a framework without fusion records. Its nodes
/// must be layers with an op (models::ModelInfo::build, weight gradients resident). docs/operations.md lists what each
/// kind of op becomes.
///
/// Operations have sizes and costs but no op of their own, so that the synthetic kernel runs them. The gradient of
/// every weight is used by the optimizer's update, and the running averages of batch norms are updated. Every update is
/// a kept node of size 0. It writes resident storage of its own, the state of the next step, so that any operation may
/// be computed again at any time. Forward and backward are marked as in `layers`; the updates are backward. Nodes are
/// in the order of the layers, each update right after its gradient.
///
/// Throws InputError for an unknown optimizer, for a node without an op, and for a kind of op that no model of the
/// registry has. O(operations + edges).
core::Graph to_operations(const core::Graph& layers, const OperationOptions& options = {});

}  // namespace cairn::models
