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
  /// Takes edges between nodes below `node_count`, in any order and direction; repeats are merged. Loops are not
  /// allowed.
  UndirectedGraph(core::NodeId node_count, const std::vector<std::pair<core::NodeId, core::NodeId>>& edges);

  core::NodeId node_count() const { return static_cast<core::NodeId>(begin_.size()) - 1; }
  std::int64_t edge_count() const { return static_cast<std::int64_t>(neighbours_.size()) / 2; }
  /// Neighbours in ascending order.
  std::span<const core::NodeId> neighbours(core::NodeId v) const {
    return {neighbours_.data() + begin_[v], neighbours_.data() + begin_[v + 1]};
  }

 private:
  std::vector<std::int64_t> begin_;
  std::vector<core::NodeId> neighbours_;
};

/// Choice of the next node to eliminate. The fill of a node is the number of pairs of its neighbours without an edge
/// between them. Ties: by degree, then by index, or at random.
enum class EliminationRule { min_fill, min_degree };

/// Degree above which min-fill takes long and no algorithm gains from the decomposition.
inline constexpr std::int32_t kDefaultCoreDegree = 192;

struct EliminationOptions {
  EliminationRule rule = EliminationRule::min_fill;
  /// Nodes of more neighbours are not eliminated: when the rule chooses one, all remaining nodes become one bag.
  std::int32_t core_degree = kDefaultCoreDegree;
  core::Random* random = nullptr;  ///< breaks ties by an order that it draws; nullptr: by index. Not owned
  std::int32_t noise = 0;          ///< with `random`: each node's fill or degree is raised by up to this much
};

/// An elimination order. The neighbours of each node, when its turn comes, are joined to a clique; with the node they
/// are a bag of a tree decomposition.
struct EliminationOrder {
  std::vector<core::NodeId> nodes;  ///< every node once
  core::NodeId core = 0;            ///< this many at the end of `nodes` are one bag, not eliminated one by one
  std::int32_t width = -1;          ///< width of the decomposition: most neighbours of an eliminated node
};

/// The minimum fill-in and minimum degree heuristics (Bodlaender & Koster 2010). Fills are counted once and then kept
/// up to date: eliminating v takes O(d) if its d neighbours are a clique, else time near-linear in the degrees of its
/// neighbours, excluding those of far more neighbours than v. When `watch` expires, the remaining nodes become one bag.
EliminationOrder elimination_order(const UndirectedGraph& graph, const EliminationOptions& options = {},
                                   core::Stopwatch* watch = nullptr);

/// The decomposition that an order gives, with nested bags merged: at most n bags. O(sum of bag sizes * log width).
TreeDecomposition decomposition_of(const UndirectedGraph& graph, const EliminationOrder& order);

/// A lower bound on the treewidth: minor-min-width, or MMD+ with the least-c rule (Gogate & Dechter 2004; Bodlaender &
/// Koster 2011). A node of least degree is contracted into the neighbour with which it has the fewest common
/// neighbours; every least degree met is a bound. -1 for the graph without nodes. O(n d^2 + m log n) for least degrees
/// up to d. `random` breaks ties; nullptr: by index. When `watch` expires, returns the bound so far.
std::int32_t treewidth_lower_bound(const UndirectedGraph& graph, core::Random* random = nullptr,
                                   core::Stopwatch* watch = nullptr);

}  // namespace cairn::solvers
