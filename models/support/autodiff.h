#pragma once

#include "cairn/core/graph.h"
#include "cairn/models/builder.h"

namespace cairn::models {

/// Appends the backward pass of `loss` (a cross_entropy or mse node) by reverse-mode differentiation, to every weight
/// that the loss depends on. Nodes are added in reverse order of the forward nodes; the gradient of a node's weights
/// comes just before that of its input. Nothing is computed that no weight needs.
///
/// A backward node is named after its forward node (`layer1.conv2/grad_input`). Contributions to one gradient are
/// summed by `add` nodes as they arrive. The node that completes a weight's gradient is kept. It writes a resident of
/// role weight_grad and has size 0, or with BuildOptions::weight_grads_in_arena it is an ordinary node.
/// Throws InputError for another loss, or an op that has no derivative here. O(nodes + args).
void backward(ModelBuilder& model, const Tensor& loss);

/// Finishes a model: adds backward() and the optimizer's state (BuildOptions::optimizer), and builds the graph.
core::Graph training_step(ModelBuilder& model, const Tensor& loss);

}  // namespace cairn::models
