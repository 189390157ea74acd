#pragma once

#include <vector>

#include "cairn/core/graph.h"

namespace cairn::solvers {

/// A part of a training graph: forward nodes and their backward nodes, each in an order in which they can run. In a
/// graph without backward nodes: any convex part.
struct Layer {
  std::vector<core::NodeId> forward, backward;
};

/// One way to run a layer: the nodes of its forward pass and of its backward pass, which runs forward nodes again if
/// what the forward pass left does not suffice. Values that the backward pass reads and does not make stay in memory
/// between the passes.
struct LayerOption {
  std::vector<core::NodeId> forward, backward;

  bool operator==(const LayerOption&) const = default;
};

/// Divides all nodes of the graph into layers of one forward node each, in an order in which their forward parts can
/// run one after the other, and their backward parts in reverse. A backward node belongs to its Graph::forward(); a
/// node without that mark, to the latest forward node it reads from, or an earlier one if its gradient comes from
/// there. A graph without backward nodes has a layer a node. O((n + m) log n). Throws InputError, naming nodes, if the
/// marks contradict the edges.
std::vector<Layer> layers_of(const core::Graph& graph);

/// Joins the layers, in this order, to one: forward parts one after the other, backward parts in reverse.
Layer join(const std::vector<const Layer*>& layers);

}  // namespace cairn::solvers
