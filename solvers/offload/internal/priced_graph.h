#pragma once

#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/link.h"
#include "cairn/core/schedule.h"

namespace cairn::solvers::offloading {

/// A graph in which a solver that knows only recomputation can choose transfers. A node whose value a link brings back
/// more cheaply than the node costs is split in two: one computes a value of no bytes, the other one loads the bytes at
/// the price of a copy and reads nothing else. To run the second node again means to fetch the value. Only nodes with
/// one output are split, and no node that is pinned or whose storage is shared in place.
class PricedGraph {
 public:
  /// A copy costs `price` times its time on the link. With a price of 1, the copies run instead of the steps; with 0,
  /// they are free. O(nodes + edges).
  PricedGraph(const core::Graph& graph, const core::Link& link, double price);

  const core::Graph& graph() const { return priced_; }
  std::int32_t split_nodes() const { return split_; }
  /// Returns a schedule of the original graph with the same recomputation, in which each further run of a loading node
  /// is a fetch. Copies leave the device as early and come back as late as the steps allow. O(steps + edges).
  core::Schedule original(const core::Schedule& schedule) const;

 private:
  const core::Graph& graph_;
  core::Graph priced_;
  std::int32_t split_ = 0;
  std::vector<core::NodeId> node_;    ///< for each priced node, the original node, or kNoNode if it loads a value
  std::vector<core::ValueId> loads_;  ///< for each priced node, the value that it loads, or kNoValue
};

}  // namespace cairn::solvers::offloading
