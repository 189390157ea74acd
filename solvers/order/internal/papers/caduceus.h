#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/solvers/order/device/caduceus.h"
#include "cairn/solvers/order/internal/papers/node_sum.h"

/// This file solves caduceus graphs on the host. Only tests call its functions. Solvers use the search over the orders
/// of keys, i.e. of the nodes where paths meet (device/key_orders.h). This search calls CaduceusSolver
/// (device/caduceus.h) for thousands of such graphs.
namespace cairn::solvers {

struct CaduceusWorkspace {
  explicit CaduceusWorkspace(const CaduceusSize& size);

  std::vector<std::max_align_t> memory;
  LaneAllocator<1> allocator;
  SegmentCaduceus graph;
  CaduceusSolver solver;
};

/// Describes a caduceus graph (Definition 7.4 of Jin et al.). Such a graph consists of a path, called the staff, and of
/// further paths, called bends, that leave the staff and rejoin it. In the node-sum model, every node has a weight, and
/// memory is the sum of the weights of the nodes that have run. Nodes are numbered along the staff, and afterwards bend
/// by bend.
struct Caduceus {
  struct Bend {
    /// Positions on the staff, counted from 0, at which the bend leaves and rejoins the staff; `from` < `to`.
    std::int32_t from = 0, to = 0;
    std::vector<std::int64_t> weights;  ///< weights of the bend's own nodes in bytes, signed; at least one
  };
  std::vector<std::int64_t> staff;  ///< weights of the staff's nodes in bytes, signed
  std::vector<Bend> bends;
};

/// Returns the graph that the staff and the bends form. Throws InputError on a malformed bend.
NodeSumGraph node_sum_graph(const Caduceus& caduceus);

/// Recognises a caduceus graph and returns its staff and bends. A branching node is a node that does not have exactly
/// one predecessor and one successor. The staff is the shortest path through all branching nodes. Edges between nodes
/// of the staff are left out, because the staff implies them. `numbering`, if given, receives the node of `graph` for
/// each number of the result. Throws InputError, which names offending nodes, if the graph is not a caduceus. O(n + m)
/// for n nodes and m edges.
Caduceus find_caduceus(const NodeSumGraph& graph, std::vector<core::NodeId>* numbering = nullptr);

/// Finds an order of least peak by Algorithm 6 of Jin et al. (OPTIMALCADUCEUS). Takes O(n + s p (p + s / p)) time for n
/// nodes, a staff of p nodes, and bends whose memory profiles have s segments (core::Segment) in all. This holds if the
/// bends are spread evenly along the staff. Throws InputError on a malformed bend.
std::vector<core::NodeId> optimal_caduceus(const Caduceus& caduceus);

/// Finds a dominant order, i.e. one whose memory profile dominates those of all other orders (Corollary 7.9 of Jin et
/// al.; core/dominance.h). Uses Algorithms 1 and 2, which call Algorithm 6 for orders of least peak. Throws InputError
/// on a malformed bend.
std::vector<core::NodeId> dominant_caduceus(const Caduceus& caduceus);

}  // namespace cairn::solvers
