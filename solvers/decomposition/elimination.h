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

/// A simple undirected graph. What takes one takes a computation graph too, and means the undirected graph under it.
/// Thread-safe to read.
class UndirectedGraph {
 public:
  UndirectedGraph(const core::Graph& graph);  ///< O(n + m)
  /// Edges between nodes below `node_count`, in any order and direction; repeats are merged. Loops are not allowed.
  UndirectedGraph(core::NodeId node_count, const std::vector<std::pair<core::NodeId, core::NodeId>>& edges);

  core::NodeId node_count() const { return static_cast<core::NodeId>(begin_.size()) - 1; }
  std::int64_t edge_count() const { return static_cast<std::int64_t>(neighbours_.size()) / 2; }
  /// Ascending.
  std::span<const core::NodeId> neighbours(core::NodeId v) const {
    return {neighbours_.data() + begin_[v], neighbours_.data() + begin_[v + 1]};
  }

 private:
  std::vector<std::int64_t> begin_;
  std::vector<core::NodeId> neighbours_;
};

/// Which node is eliminated next. Its fill is the number of pairs of its neighbours that no edge joins. Ties: by
/// degree, then by index, or at random.
enum class EliminationRule { min_fill, min_degree };

/// Beyond it min-fill takes long, and no algorithm gains from the decomposition.
inline constexpr std::int32_t kDefaultCoreDegree = 192;

struct EliminationOptions {
  EliminationRule rule = EliminationRule::min_fill;
  /// Nodes of more neighbours are not eliminated: when the rule chooses one, what is left becomes one bag.
  std::int32_t core_degree = kDefaultCoreDegree;
  core::Random* random = nullptr;  ///< breaks ties by an order that it draws; nullptr: by index. Not owned
  std::int32_t noise = 0;          ///< with `random`: each node's fill or degree counts as up to so much more
};

/// An order in which nodes are eliminated: the neighbours of each, when its turn comes, are joined to a clique, and
/// with it they are a bag of a tree decomposition.
struct EliminationOrder {
  std::vector<core::NodeId> nodes;  ///< every node once
  core::NodeId core = 0;            ///< so many at the end of `nodes` are not eliminated one by one but are one bag
  std::int32_t width = -1;          ///< of the decomposition: the most neighbours that an eliminated node had
};

/// The minimum fill-in and minimum degree heuristics (Bodlaender & Koster 2010). Fills are counted once and then kept
/// up to date: eliminating v takes O(d) where its d neighbours are a clique, else time near-linear in the degrees of
/// its neighbours, those of far more neighbours than v's left out. When `watch` expires, what is left becomes one bag.
EliminationOrder elimination_order(const UndirectedGraph& graph, const EliminationOptions& options = {},
                                   core::Stopwatch* watch = nullptr);

/// The decomposition that an order gives, its nested bags merged: at most n bags. O(sum of bag sizes * log width).
TreeDecomposition decomposition_of(const UndirectedGraph& graph, const EliminationOrder& order);

/// A lower bound on the treewidth: minor-min-width, or MMD+ with the least-c rule (Gogate & Dechter 2004; Bodlaender &
/// Koster 2011). A node of least degree is contracted into the neighbour with which it has the fewest neighbours in
/// common; every least degree met is a bound. -1 for the graph without nodes. O(n d^2 + m log n) for least degrees up
/// to d. `random` breaks ties; nullptr: by index. When `watch` expires, the bound so far.
std::int32_t treewidth_lower_bound(const UndirectedGraph& graph, core::Random* random = nullptr,
                                   core::Stopwatch* watch = nullptr);

}  // namespace cairn::solvers
