#pragma once

#include "cairn/core/graph.h"
#include "cairn/models/builder.h"

namespace cairn::models {

/// Appends the backward pass by reverse-mode differentiation: nodes that compute the gradient of `loss` (a
/// cross_entropy or mse node) with respect to every weight on which the loss depends. Nodes are added in reverse order
/// of the forward nodes. The gradient of a node's weights is added directly before the gradient of its input. Gradients
/// that no gradient of a weight depends on are not computed.
///
/// A backward node is named after its forward node (`layer1.conv2/grad_input`). If a gradient is a sum of several
/// contributions, `add` nodes sum them one by one. The node that completes a weight's gradient is kept. It writes a
/// resident tensor of role weight_grad and has size 0. With BuildOptions::weight_grads_in_arena, this node is also
/// kept, but its output is in the arena. With the optimizers sgd and adamw, the updates of the weights are added, too.
/// The gradients are then in the arena, and are kept only with weight_grads_in_arena.
///
/// Throws InputError for another kind of loss, or for an op that has no derivative here. O(nodes + args).
void backward(ModelBuilder& model, const Tensor& loss);

/// Finishes a model. Adds the backward pass and the optimizer's state (BuildOptions::optimizer), and builds the graph.
/// The builder is empty afterwards; after an exception it is as before.
core::Graph training_step(ModelBuilder& model, const Tensor& loss);

}  // namespace cairn::models
