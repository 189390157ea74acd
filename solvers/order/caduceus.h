#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/node_sum.h"

namespace cairn::solvers {

/// A caduceus graph in the node-sum model (Definition 7.4): a path, the staff, and bends that leave it and come back.
/// Nodes are numbered along the staff, then bend by bend.
struct Caduceus {
  struct Bend {
    std::int32_t from = 0, to = 0;      ///< the staff positions it leaves and joins, from < to, counted from 0
    std::vector<std::int64_t> weights;  ///< of its own nodes, at least one; bytes, signed
  };
  std::vector<std::int64_t> staff;  ///< weights
  std::vector<Bend> bends;
};

core::NodeSumGraph node_sum_graph(const Caduceus& caduceus);

/// Recognises a caduceus. The staff is the shortest path through all nodes that branch (all but those of one
/// predecessor and one successor); edges between its nodes that it implies are dropped. `numbering` gets the graph's
/// node behind each number. Throws InputError naming the nodes that break the class. O(n + m).
Caduceus find_caduceus(const core::NodeSumGraph& graph, std::vector<core::NodeId>* numbering = nullptr);

/// Algorithm 6 (OPTIMALCADUCEUS): an order of least peak, with a segment tree of maxima over the segments a gap of the
/// staff may hold. O(n + s p log(s p)) for s segments and a staff of p. Throws InputError on a malformed bend.
std::vector<core::NodeId> optimal_caduceus(const Caduceus& caduceus);

/// Corollary 7.9: an order that dominates all, by Algorithms 1 and 2 around Algorithm 6. A minimum cut of a caduceus
/// needs no flow: for each staff position every bend stands at its lowest reachable valley.
std::vector<core::NodeId> dominant_caduceus(const Caduceus& caduceus);

}  // namespace cairn::solvers
