#pragma once

#include <ranges>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::solvers {

/// Describes a part of a training graph: some forward nodes and their backward nodes. Each of the two lists is in an
/// order in which its nodes can run. In a graph without backward nodes, a layer is any convex set of nodes: no path
/// leads from the set out and back in.
struct Layer {
  std::vector<core::NodeId> forward, backward;
};

/// Describes one way to run a layer. `forward` lists the nodes that run in the forward pass, and `backward` lists the
/// nodes that run in the backward pass. The backward pass runs forward nodes again if it needs values that the forward
/// pass did not leave in memory. The values that the backward pass reads but does not make stay in memory between the
/// passes.
struct LayerOption {
  std::vector<core::NodeId> forward, backward;

  bool operator==(const LayerOption&) const = default;
};

/// Divides the nodes of the graph into layers of one forward node each. The forward parts of the layers can run in the
/// returned order, and the backward parts in reverse order. A backward node belongs to the layer of its
/// Graph::forward(). A backward node without that mark belongs to the layer of the latest forward node from which it
/// reads, or to an earlier layer if it reads a backward node of that layer. In a graph without backward nodes, each
/// node is a layer. O((n + m) log n) for n nodes and m inputs. Throws InputError that names the nodes if the backward
/// marks contradict the edges.
std::vector<Layer> layers_of(const core::Graph& graph);

/// Joins layers into one layer, or options of layers into one option. The forward part of the result consists of all
/// forward parts, in the given order. Its backward part consists of all backward parts, in reverse order.
template <class Part>
Part join(const std::vector<const Part*>& parts) {
  Part joined;
  for (const Part* part : parts)
    joined.forward.insert(joined.forward.end(), part->forward.begin(), part->forward.end());
  for (const Part* part : std::views::reverse(parts))
    joined.backward.insert(joined.backward.end(), part->backward.begin(), part->backward.end());
  return joined;
}

}  // namespace cairn::solvers
