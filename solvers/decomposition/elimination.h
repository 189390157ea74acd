#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/random.h"

namespace cairn::solvers {

struct TreeDecomposition;

/// Stores an undirected graph without repeated edges. Several threads may read the object at the same time.
class UndirectedGraph {
 public:
  /// Makes an undirected graph by ignoring the directions of the edges. O(n + m) for n nodes and m edges.
  UndirectedGraph(const core::Graph& graph);
  /// Makes a graph of edges between nodes below `node_count`. Edges may come in any order and direction; repeated edges
  /// are merged. Edges from a node to itself are not allowed.
  UndirectedGraph(core::NodeId node_count, const std::vector<std::pair<core::NodeId, core::NodeId>>& edges);

  core::NodeId node_count() const { return static_cast<core::NodeId>(begin_.size()) - 1; }
  std::int64_t edge_count() const { return static_cast<std::int64_t>(neighbours_.size()) / 2; }
  /// Returns the neighbours of v in ascending order.
  std::span<const core::NodeId> neighbours(core::NodeId v) const {
    return {neighbours_.data() + begin_[v], neighbours_.data() + begin_[v + 1]};
  }

 private:
  std::vector<std::int64_t> begin_;
  std::vector<core::NodeId> neighbours_;
};

/// Names the rule that chooses the next node to eliminate: the node of least fill or of least degree. The fill of a
/// node is the number of pairs of its neighbours without an edge between them. Ties are broken by degree, further ties
/// by index or at random.
enum class EliminationRule : std::uint8_t { min_fill, min_degree };

/// Default of EliminationOptions::core_degree. Eliminating nodes of higher degree takes long, and gives bags too large
/// for the algorithms that use them.
inline constexpr std::int32_t kDefaultCoreDegree = 192;

struct EliminationOptions {
  EliminationRule rule = EliminationRule::min_fill;
  /// When the rule chooses a node with more neighbours than this, elimination ends, and all remaining nodes become one
  /// bag.
  std::int32_t core_degree = kDefaultCoreDegree;
  /// Source of a random order that breaks ties. nullptr: ties are broken by index. Not owned.
  core::Random* random = nullptr;
  std::int32_t noise = 0;  ///< largest random amount that is added to a node's fill or degree, if there is a `random`
};

/// Holds an order in which nodes are eliminated. Eliminating a node means to connect all pairs of its remaining
/// neighbours by edges and to remove the node. The node and these neighbours form a bag of a tree decomposition.
struct EliminationOrder {
  std::vector<core::NodeId> nodes;  ///< every node once
  /// Number of nodes at the end of `nodes` that are not eliminated, but form one bag together.
  core::NodeId core = 0;
  /// Width of the tree decomposition: the size of its largest bag, minus one.
  std::int32_t width = -1;
};

/// Computes an order by the minimum fill-in or minimum degree heuristic (Bodlaender & Koster 2010). The fills of all
/// nodes are counted once, and updated after each elimination. Eliminating a node takes O(d) if its d neighbours are
/// already a clique. Otherwise it takes time near-linear in the sum of its neighbours' degrees, where neighbours with a
/// far larger degree than the node itself do not count. When `watch` expires, the remaining nodes become one bag.
EliminationOrder elimination_order(const UndirectedGraph& graph, const EliminationOptions& options = {},
                                   core::Stopwatch* watch = nullptr);

/// Builds the tree decomposition of an elimination order. Merges bags that are contained in a neighbouring bag, so that
/// a graph of n nodes gets at most n bags. O(sum of bag sizes * log width).
TreeDecomposition decomposition_of(const UndirectedGraph& graph, const EliminationOrder& order);

/// Computes a lower bound on the treewidth by minor-min-width, also called MMD+ with the least-c rule (Gogate & Dechter
/// 2004; Bodlaender & Koster 2011). The function repeatedly contracts a node of least degree into the neighbour with
/// which it has the fewest common neighbours. The least degree before each contraction is a lower bound, because no
/// contraction raises the treewidth. Returns the largest of these bounds, or -1 for the graph without nodes. Takes O(n
/// d^2 + m log n) time for n nodes, m edges and the result d. `random` breaks ties; nullptr: ties are broken by index.
/// When `watch` expires, returns the best bound so far.
std::int32_t treewidth_lower_bound(const UndirectedGraph& graph, core::Random* random = nullptr,
                                   core::Stopwatch* watch = nullptr);

}  // namespace cairn::solvers
