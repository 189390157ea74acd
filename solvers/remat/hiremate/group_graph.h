#pragma once

#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/remat/rotor/layers.h"

namespace cairn::solvers {

/// Makes a graph of a single layer, for solvers that do not support layers. The graph consists of the layer's nodes and
/// one extra node for the rest of the whole graph. The extra node runs once, between the forward and the backward pass.
class GroupGraph {
 public:
  /// Builds the graph of a layer of the graph `whole`. O(n + m) of the whole graph.
  GroupGraph(const core::Graph& whole, const Layer& layer);

  /// Returns the graph with a suitable scratch of the extra node. With this scratch, a schedule of at most `peak` bytes
  /// has at most `between` bytes of the layer in memory while the rest of the whole graph runs. Values of the layer
  /// that the rest reads do not count.
  core::Graph within(std::int64_t peak, std::int64_t between) const;
  /// Converts a schedule of the graph returned by within() to an option of the layer. The option uses the node ids of
  /// the whole graph.
  LayerOption option(const core::Schedule& schedule) const;

 private:
  core::Graph graph_;
  std::vector<core::NodeId> whole_id_;
  core::NodeId rest_ = core::kNoNode;
  std::int64_t leaving_bytes_ = 0;
};

}  // namespace cairn::solvers
