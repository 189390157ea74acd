#pragma once

#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/link.h"
#include "cairn/core/schedule.h"

namespace cairn::solvers::offloading {

/// Makes a graph in which a solver that only handles recomputation can choose transfers. A node is split in two if a
/// copy over the link is cheaper than the node. The first half computes a value of no bytes. The second half, the
/// loading node, reads only this value, makes the bytes of the original value, and costs as much as a copy. Running the
/// loading node again stands for a fetch of the value. A node is not split if it has several outputs, if it is pinned,
/// or if its output shares storage with another value in place.
class PricedGraph {
 public:
  /// A copy costs `price` times its time on the link. A price of 1 means that no step runs during a copy, and 0 means
  /// that copies are free. O(nodes + edges).
  PricedGraph(const core::Graph& graph, const core::Link& link, double price);

  const core::Graph& graph() const { return priced_; }
  std::int32_t split_nodes() const { return split_; }
  /// Turns a schedule of graph() into a schedule of the original graph with the same recomputation. The first run of a
  /// loading node after its value was computed is left out; each further run becomes a fetch. Values leave the device
  /// as early and come back as late as the steps allow. O(steps + edges).
  core::Schedule original(const core::Schedule& schedule) const;

 private:
  const core::Graph& graph_;
  core::Graph priced_;
  std::int32_t split_ = 0;
  std::vector<core::NodeId> node_;    ///< for each priced node, the original node, or kNoNode if it loads a value
  std::vector<core::ValueId> loads_;  ///< for each priced node, the value that it loads, or kNoValue
};

}  // namespace cairn::solvers::offloading
