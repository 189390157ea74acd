#pragma once

#include "cairn/core/graph.h"
#include "cairn/models/builder.h"

namespace cairn::models {

/// Reverse-mode differentiation: appends the backward pass of `loss` (a cross_entropy or mse node) to every weight that
/// it depends on, in reverse order of the forward nodes, weight gradients just before the gradient of the same node's
/// input. Nothing is computed that no weight needs.
///
/// A backward node is named after its forward node (`layer1.conv2/grad_input`). Contributions to one gradient are
/// summed by `add` nodes as they arrive. The node that completes a weight's gradient is kept; it writes a resident of
/// role weight_grad and has size 0, or with BuildOptions::weight_grads_in_arena it is an ordinary node.
/// Throws InputError for another loss, or an op that has no derivative here. O(nodes + args).
void backward(ModelBuilder& model, const Tensor& loss);

/// What every model ends with: backward(), the optimizer's state (BuildOptions::optimizer), and the graph.
core::Graph training_step(ModelBuilder& model, const Tensor& loss);

}  // namespace cairn::models
