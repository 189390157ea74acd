#pragma once

#include <span>
#include <string>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::core {

/// The subgraph induced by a set of nodes: these nodes and the edges between them as a graph of its own, with id maps
/// in both directions and its boundary.
struct InducedSubgraph {
  Graph graph;                    ///< the subgraph; its nodes ascend by their ids in the whole graph
  std::vector<NodeId> whole_id;   ///< for each node of `graph`, its id in the whole graph
  std::vector<NodeId> own_id;     ///< for each node of the whole graph, its id in `graph`, or kNoNode if it is outside
  std::vector<ValueId> entering;  ///< values made outside and read by nodes inside; ids of the whole, ascending
  std::vector<ValueId> leaving;   ///< values made inside and read by nodes outside; ids of the whole, ascending
};

struct SubgraphOptions {
  std::string name;           ///< name of the subgraph
  bool keep_leaving = false;  ///< keep the values that leave, because nodes outside read them later
};

/// Builds the subgraph induced by `nodes`. Sizes, costs, residents and the input order are those of the whole graph.
/// Values that enter are not part of the subgraph, nor of its memory; whoever holds them counts them. The scratch of a
/// node that takes over storage of such a value is raised to what is legal without it. If values enter, nodes have size
/// and cost only, no ops. Repeats in `nodes` are dropped. Throws InputError on a number that is no node. O(n + m).
InducedSubgraph induced_subgraph(const Graph& graph, std::span<const NodeId> nodes, SubgraphOptions options = {});

}  // namespace cairn::core
