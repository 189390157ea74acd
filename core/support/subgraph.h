#pragma once

#include <span>
#include <string>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::core {

/// The subgraph that a set of nodes induces. It consists of these nodes and the edges between them. `whole_id` and
/// `own_id` translate ids in both directions. `entering` and `leaving` list the values that cross the boundary of the
/// subgraph.
struct InducedSubgraph {
  Graph graph;                    ///< the subgraph; its nodes ascend by their ids in the whole graph
  std::vector<NodeId> whole_id;   ///< for each node of `graph`, its id in the whole graph
  std::vector<NodeId> own_id;     ///< for each node of the whole graph, its id in `graph`, or kNoNode if it is outside
  std::vector<ValueId> entering;  ///< values made outside and read inside; ids of the whole graph, ascending
  std::vector<ValueId> leaving;   ///< values made inside and read outside; ids of the whole graph, ascending
};

struct SubgraphOptions {
  std::string name;           ///< name of the subgraph
  bool keep_leaving = false;  ///< whether to keep the values that leave, because nodes outside read them later
};

/// Builds the subgraph induced by `nodes`. Sizes, costs, residents and the input order are those of the whole graph.
/// Values that enter the subgraph are not part of it, and their bytes are not part of its memory, so the caller must
/// count them. If a node takes over the storage of such a value, its negative scratch is raised to the least number
/// that is legal without this storage. If at least one value enters, the subgraph's nodes have no ops, only sizes and
/// costs. Duplicates in `nodes` are dropped. Throws InputError on a number that is no node. O(nodes + edges of the
/// whole graph).
InducedSubgraph induced_subgraph(const Graph& graph, std::span<const NodeId> nodes, SubgraphOptions options = {});

}  // namespace cairn::core
