#pragma once

#include <vector>

#include "cairn/core/graph.h"

namespace cairn::solvers {

/// A part of a training graph: some forward nodes and their backward nodes. Each list is in an order in which it can
/// run. In a graph without backward nodes, a layer is any convex part.
struct Layer {
  std::vector<core::NodeId> forward, backward;
};

/// One way to run a layer: the nodes of the forward pass and those of the backward pass. The backward pass runs forward
/// nodes again if it needs values that the forward pass did not leave in memory. Values that the backward pass reads
/// but does not make stay in memory between the passes.
struct LayerOption {
  std::vector<core::NodeId> forward, backward;

  bool operator==(const LayerOption&) const = default;
};

/// Divides the nodes of the graph into layers of one forward node each. The forward parts of the layers can run in the
/// returned order, and the backward parts in reverse order. A backward node belongs to the layer of its
/// Graph::forward(). A backward node without that mark belongs to the layer of the latest forward node from which it
/// reads, or to an earlier layer if its gradient comes from there. In a graph without backward nodes, each node is a
/// layer. O((n + m) log n) for n nodes and m inputs. Throws InputError that names the nodes if the marks contradict the
/// edges.
std::vector<Layer> layers_of(const core::Graph& graph);

/// Joins the layers into one layer. The forward part of the result consists of all forward parts, in the given order.
/// The backward part consists of all backward parts in reverse order.
Layer join(const std::vector<const Layer*>& layers);

}  // namespace cairn::solvers
