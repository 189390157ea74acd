#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/core/node_sum.h"
#include "cairn/solvers/order/device/caduceus.h"

/// Caduceus graphs on the host, for tests. No solver calls these functions. Key orders (device/key_orders.h) solve
/// thousands of such graphs directly with CaduceusSolver.
namespace cairn::solvers {

/// A CaduceusSolver and a graph for it, with the memory that both use.
struct CaduceusWorkspace {
  explicit CaduceusWorkspace(const CaduceusSize& size);

  std::vector<std::max_align_t> memory;
  BumpAllocator allocator;
  SegmentCaduceus graph;
  CaduceusSolver solver;
};

/// A caduceus graph in the node-sum model (Definition 7.4). It consists of a path, called the staff, and of further
/// paths, called bends, that leave the staff and rejoin it. Nodes are numbered along the staff, and afterwards bend by
/// bend.
struct Caduceus {
  struct Bend {
    /// from, to: staff positions at which the bend leaves and rejoins the staff, counted from 0; from < to.
    std::int32_t from = 0, to = 0;
    std::vector<std::int64_t> weights;  ///< weights of the bend's own nodes, at least one; bytes, signed
  };
  std::vector<std::int64_t> staff;  ///< weights of the staff's nodes; bytes, signed
  std::vector<Bend> bends;
};

core::NodeSumGraph node_sum_graph(const Caduceus& caduceus);

/// Recognises a caduceus graph and returns its staff and bends. The staff is the shortest path through all nodes that
/// branch. A node branches unless it has exactly one predecessor and one successor. Edges between staff nodes that the
/// staff implies are dropped. `numbering` receives the graph's node for each number. Throws InputError, which names
/// offending nodes, if the graph is not a caduceus. O(n + m).
Caduceus find_caduceus(const core::NodeSumGraph& graph, std::vector<core::NodeId>* numbering = nullptr);

/// Finds an order of least peak by Algorithm 6 (OPTIMALCADUCEUS). O(n + s p (p + s / p)) for s segments and a staff of
/// p nodes, if the bends are spread evenly. Throws InputError on a malformed bend.
std::vector<core::NodeId> optimal_caduceus(const Caduceus& caduceus);

/// Finds an order that dominates all others (Corollary 7.9), by Algorithms 1 and 2, which use Algorithm 6 to search for
/// a least peak.
std::vector<core::NodeId> dominant_caduceus(const Caduceus& caduceus);

}  // namespace cairn::solvers
