#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/solvers/decomposition/elimination.h"
#include "cairn/solvers/decomposition/internal/neighbour_sets.h"
#include "cairn/solvers/decomposition/internal/node_queue.h"

namespace cairn::solvers {

/// Eliminates nodes one by one (EliminationOrder). Maintains the degree of every node and, under the rule min-fill,
/// also its fill (EliminationRule).
class Eliminator {
 public:
  Eliminator(const UndirectedGraph& graph, const EliminationOptions& options);

  bool done() const { return queue_.empty(); }
  core::NodeId next() const { return queue_.top(); }  ///< node that the rule chooses to eliminate next
  bool eliminated(core::NodeId v) const { return sets_.removed(v); }
  std::int32_t degree(core::NodeId v) const { return sets_.degree(v); }
  /// Returns the fill of v: the number of pairs of its neighbours without an edge between them. Valid only under
  /// min-fill.
  std::int64_t fill(core::NodeId v) const { return fill_[v]; }
  std::span<const core::NodeId> neighbours(core::NodeId v) { return sets_.neighbours(v); }

  /// Connects all pairs of v's neighbours and removes v.
  void eliminate(core::NodeId v);

 private:
  std::span<std::uint64_t> row(std::vector<std::uint64_t>& rows, std::size_t i) const {
    return {rows.data() + i * words_, words_};
  }
  NodeQueue::Key key(core::NodeId v) const;
  void find_missing_edges();
  void walk(std::size_t member);
  void meet_unwalked();
  void update_fills();
  void add_missing_edges();

  NeighbourSets sets_;
  std::vector<std::int64_t> fill_;  ///< fill of each node; empty under min-degree
  /// For each node, the random amount that is added to its fill or degree in the queue's key. Empty: nothing is added.
  std::vector<std::int32_t> noise_;
  NodeQueue queue_;
  std::vector<std::int32_t> place_;  ///< index of each node in touched_; -1: the node is not there

  // State of the current elimination. The members are the neighbours of the node that is being eliminated. A set of
  // members is stored as a row of `words_` words, with one bit for each member.
  std::size_t members_ = 0, words_ = 0;
  std::vector<core::NodeId> touched_;    ///< the members, then the other nodes adjacent to some member
  std::vector<std::uint64_t> adjacent_;  ///< for each of touched_: the set of members adjacent to it
  std::vector<std::uint64_t> missing_;   ///< for each member: the set of members not adjacent to it
  std::vector<std::uint64_t> lacking_;   ///< the set of members with a missing edge to at least one other member
  std::vector<std::uint8_t> walked_;     ///< for each member: whether all its neighbours are in touched_
};

}  // namespace cairn::solvers
