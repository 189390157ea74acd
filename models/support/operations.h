#pragma once

#include <string>

#include "cairn/core/graph.h"

namespace cairn::models {

/// How a training step is taken apart.
struct OperationOptions {
  /// The update of every weight: `none` is plain gradient descent, else `momentum` or `adam`.
  std::string optimizer = "none";
  /// Adds half the squared norm of every weight of two axes and more to the loss, and its gradient to theirs.
  bool weight_decay = false;
  /// The weights' gradients are kept; else they are freed once the update has read them.
  bool keep_gradients = false;
  core::Roofline roofline = {};  ///< the cost of each operation
};

/// The training step `layers`, whose nodes are layers with an op (models::ModelInfo::build, weight gradients resident),
/// in the elementary operations that a framework without fusion records: docs/operations.md lists what each kind of op
/// becomes. The operations have sizes and costs and no op of their own, so that the synthetic kernel runs them; the
/// gradient of every weight goes on into the optimizer's update, the running averages of batch norms are updated, and
/// every update is a kept node of size 0 that writes resident storage of its own, the state of the next step, so that
/// any operation may be computed again at any time. Forward and backward are marked as in `layers`; the updates are
/// backward. Nodes stand in the order of the layers, each update right after its gradient.
/// Throws InputError for an optimizer that it does not know, for a node without an op, and for a kind of op that no
/// model of the registry has. O(operations + edges).
core::Graph to_operations(const core::Graph& layers, const OperationOptions& options = {});

}  // namespace cairn::models
