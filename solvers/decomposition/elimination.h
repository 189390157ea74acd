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

/// A simple undirected graph. A computation graph converts to its underlying undirected graph. Thread-safe to read.
class UndirectedGraph {
 public:
  UndirectedGraph(const core::Graph& graph);  ///< O(n + m)
  /// Makes a graph of edges between nodes below `node_count`, in any order and direction; repeats are merged. Loops are
  /// not allowed.
  UndirectedGraph(core::NodeId node_count, const std::vector<std::pair<core::NodeId, core::NodeId>>& edges);

  core::NodeId node_count() const { return static_cast<core::NodeId>(begin_.size()) - 1; }
  std::int64_t edge_count() const { return static_cast<std::int64_t>(neighbours_.size()) / 2; }
  /// The neighbours of v in ascending order.
  std::span<const core::NodeId> neighbours(core::NodeId v) const {
    return {neighbours_.data() + begin_[v], neighbours_.data() + begin_[v + 1]};
  }

 private:
  std::vector<std::int64_t> begin_;
  std::vector<core::NodeId> neighbours_;
};

/// The rule that chooses the next node to eliminate: least fill or least degree. The fill of a node is the number of
/// pairs of its neighbours without an edge between them. Ties are broken by degree, then by index, or at random.
enum class EliminationRule { min_fill, min_degree };

/// Degree above which min-fill takes long and no algorithm gains from the decomposition
/// (EliminationOptions::core_degree).
inline constexpr std::int32_t kDefaultCoreDegree = 192;

struct EliminationOptions {
  EliminationRule rule = EliminationRule::min_fill;
  /// Most neighbours of a node that is eliminated: when the rule chooses a node of more, all remaining nodes become one
  /// bag.
  std::int32_t core_degree = kDefaultCoreDegree;
  /// Source of a random order by which ties are broken; nullptr: ties are broken by index. Not owned.
  core::Random* random = nullptr;
  std::int32_t noise = 0;  ///< with `random`: most by which a node's fill or degree is raised at random
};

/// An elimination order. When a node's turn comes, its remaining neighbours are joined to a clique; the node and these
/// neighbours are a bag of a tree decomposition.
struct EliminationOrder {
  std::vector<core::NodeId> nodes;  ///< every node once
  /// Number of nodes at the end of `nodes` that form one bag and are not eliminated one by one.
  core::NodeId core = 0;
  /// Width of the decomposition: most neighbours that a node has when it is eliminated.
  std::int32_t width = -1;
};

/// Computes an order by the minimum fill-in or minimum degree heuristic (Bodlaender & Koster 2010). Fills are counted
/// once and then kept up to date: eliminating v takes O(d) if its d neighbours are a clique, else time near-linear in
/// the degrees of its neighbours, excluding those of far more neighbours than v. When `watch` expires, the remaining
/// nodes become one bag.
EliminationOrder elimination_order(const UndirectedGraph& graph, const EliminationOptions& options = {},
                                   core::Stopwatch* watch = nullptr);

/// Builds the tree decomposition of an elimination order and merges nested bags: at most n bags. O(sum of bag sizes *
/// log width).
TreeDecomposition decomposition_of(const UndirectedGraph& graph, const EliminationOrder& order);

/// Computes a lower bound on the treewidth: minor-min-width, or MMD+ with the least-c rule (Gogate & Dechter 2004;
/// Bodlaender & Koster 2011). A node of least degree is contracted into the neighbour with which it has the fewest
/// common neighbours; every least degree met is a bound. -1 for the graph without nodes. O(n d^2 + m log n) for least
/// degrees up to d. `random` breaks ties; nullptr: by index. When `watch` expires, returns the bound so far.
std::int32_t treewidth_lower_bound(const UndirectedGraph& graph, core::Random* random = nullptr,
                                   core::Stopwatch* watch = nullptr);

}  // namespace cairn::solvers
