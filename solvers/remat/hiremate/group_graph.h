#pragma once

#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/remat/rotor/layers.h"

namespace cairn::solvers {

/// Makes a graph from a single layer (layers.h) of a larger graph, for solvers that cannot handle layers. The graph
/// consists of the layer's nodes and one extra node, which stands for the rest of the larger graph. The extra node runs
/// once, between the forward and the backward pass.
class GroupGraph {
 public:
  /// Builds the graph for a layer of the graph `whole`. O(n + m) if `whole` has n nodes and m edges.
  GroupGraph(const core::Graph& whole, const Layer& layer);

  /// Returns the graph for schedules with a peak of at most `peak` bytes. The extra node gets so much scratch (memory
  /// that a node needs only while it runs) that in these schedules, at most `between` bytes of the layer are in memory
  /// while it runs. Values of the layer's forward part that the rest reads do not count as part of `between`.
  core::Graph within(std::int64_t peak, std::int64_t between) const;
  /// Converts a schedule of the graph returned by within() to an option of the layer, i.e. to a way to run the layer
  /// (LayerOption). The option has the node ids of the whole graph.
  LayerOption option(const core::Schedule& schedule) const;

 private:
  core::Graph graph_;
  std::vector<core::NodeId> whole_id_;
  core::NodeId rest_ = core::kNoNode;
  std::int64_t leaving_bytes_ = 0;
};

}  // namespace cairn::solvers
