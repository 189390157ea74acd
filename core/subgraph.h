#pragma once

#include <span>
#include <string>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::core {

/// The subgraph that a set of nodes induces: these nodes and the edges between them, as a graph of its own, with its id
/// map both ways and its boundary.
struct InducedSubgraph {
  Graph graph;                    ///< nodes in ascending order of their ids in the whole
  std::vector<NodeId> whole_id;   ///< of each node of `graph`: its id in the whole
  std::vector<NodeId> own_id;     ///< of each node of the whole: its id in `graph`; kNoNode: outside
  std::vector<ValueId> entering;  ///< made outside, read by nodes inside; ids of the whole, ascending
  std::vector<ValueId> leaving;   ///< made inside, read by nodes outside; ids of the whole, ascending
};

struct SubgraphOptions {
  std::string name;           ///< of the subgraph
  bool keep_leaving = false;  ///< values that leave are kept: somebody still reads them when the subgraph has run
};

/// Sizes, costs, residents and the input order are those of the whole. Values that enter are not part of the subgraph,
/// nor of its memory: whoever holds them counts them. What a node takes over of their storage is not taken off there,
/// so its scratch is raised to what is legal without them; and where values enter, nodes have size and cost only, no
/// ops. Repeats in `nodes` are dropped; InputError on a number that is no node. O(n + m).
InducedSubgraph induced_subgraph(const Graph& graph, std::span<const NodeId> nodes, SubgraphOptions options = {});

}  // namespace cairn::core
