#pragma once

#include <vector>

#include "cairn/core/graph.h"

namespace cairn::solvers {

/// A part of a training graph: forward nodes and the backward nodes that belong to them, each in an order in which they
/// can run. Without backward nodes: any convex part of a graph.
struct Layer {
  std::vector<core::NodeId> forward, backward;
};

/// One way to run a layer: what runs in its forward pass, and in its backward pass, forward nodes again where what the
/// forward pass left does not suffice. Whatever the backward part reads and does not make stays in memory between them.
struct LayerOption {
  std::vector<core::NodeId> forward, backward;

  bool operator==(const LayerOption&) const = default;
};

/// All nodes of the graph in layers of one forward node each, in an order in which their forward parts can run one
/// after the other, and their backward parts in reverse. A backward node belongs to its Graph::forward(); one without
/// that mark to the latest forward node it reads from, or an earlier one where its gradient comes from there. A graph
/// without backward nodes has a layer a node. O((n + m) log n). Throws InputError, naming nodes, where the marks
/// contradict the edges.
std::vector<Layer> layers_of(const core::Graph& graph);

/// The layers together, in this order: forward parts one after the other, backward parts in reverse.
Layer join(const std::vector<const Layer*>& layers);

}  // namespace cairn::solvers
