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
  /// Whether to keep the gradients of the weights until the end. If false, a gradient is freed once its update has read
  /// it.
  bool keep_gradients = false;
  core::Roofline roofline = {};  ///< gives the cost of each operation
};

/// Returns a graph in which each layer of the training step `layers` is replaced by elementary operations, like those
/// that a framework records if it fuses no operations. All nodes of `layers` must be layers with an op, and weight
/// gradients must be resident, as ModelInfo::build makes them. docs/operations.md lists the operations for each kind of
/// op.
///
/// The nodes of the result have sizes and costs but no op. The result also updates every weight and the running
/// averages of batch norms. Every update is a kept node of size 0 that writes to separate resident storage, which holds
/// the state of the next training step. So the old state remains, and every operation can be computed again at any
/// time. Forward and backward nodes are marked as in `layers`; updates are marked as backward nodes. Nodes are in the
/// order of the layers. The update of a weight follows directly behind the weight's gradient.
///
/// Throws InputError for an optimizer that OperationOptions::optimizer does not list, for a node without an op, and for
/// a kind of op that occurs in no model of the registry. O(operations + edges).
core::Graph to_operations(const core::Graph& layers, const OperationOptions& options = {});

}  // namespace cairn::models
