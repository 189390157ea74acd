#pragma once

#include <string>

#include "cairn/core/graph.h"

namespace cairn::models {

/// Options of to_operations().
struct OperationOptions {
  /// The optimizer, whose update is applied to every weight: `none` (plain gradient descent), `momentum` or `adam`.
  std::string optimizer = "none";
  /// Whether to add half the squared norm of every weight with two or more axes to the loss, and the gradient of this
  /// term to the weight's gradient.
  bool weight_decay = false;
  /// Whether to keep the gradients of the weights. If false, they are freed once the update has read them.
  bool keep_gradients = false;
  core::Roofline roofline = {};  ///< gives the cost of each operation
};

/// Rewrites the training step `layers` as the elementary operations that a framework without fusion records. All nodes
/// of `layers` must be layers with an op, and weight gradients must be resident, as ModelInfo::build makes them.
/// docs/operations.md lists the operations for each kind of op.
///
/// Operations have sizes and costs but no op. The optimizer's update reads the gradient of every weight, and the
/// running averages of batch norms are updated too. Every update is a kept node of size 0. It writes separate resident
/// storage, which is the state of the next step. So the old state remains, and every operation can be computed again at
/// any time. Forward and backward are marked as in `layers`; updates are backward. Nodes are in the order of the
/// layers. Each update is directly behind its gradient.
///
/// Throws InputError for an optimizer other than those of OperationOptions, for a node without an op, and for a kind of
/// op that occurs in no model of the registry. O(operations + edges).
core::Graph to_operations(const core::Graph& layers, const OperationOptions& options = {});

}  // namespace cairn::models
