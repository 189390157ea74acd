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
  core::NodeId next() const { return queue_.top(); }
  bool eliminated(core::NodeId v) const { return sets_.removed(v); }
  std::int32_t degree(core::NodeId v) const { return sets_.degree(v); }
  /// Returns the fill of v. Valid only under the rule min-fill.
  std::int64_t fill(core::NodeId v) const { return fill_[v]; }
  std::span<const core::NodeId> neighbours(core::NodeId v) { return sets_.neighbours(v); }

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
  std::vector<std::int64_t> fill_;  ///< empty under the rule min-degree
  /// For each node, a random amount added to its fill or degree in the queue's key. Empty: nothing is added.
  std::vector<std::int32_t> noise_;
  NodeQueue queue_;
  std::vector<std::int32_t> place_;  ///< index of each node in touched_, or -1

  // State of the current elimination. The members are the neighbours of the eliminated node. A set of members is stored
  // as a row of `words_` words, with one bit per member.
  std::size_t members_ = 0, words_ = 0;
  std::vector<core::NodeId> touched_;    ///< the members, then the other nodes adjacent to some member
  std::vector<std::uint64_t> adjacent_;  ///< for each entry of touched_: the members adjacent to it
  std::vector<std::uint64_t> missing_;   ///< for each member: the members not adjacent to it
  std::vector<std::uint64_t> lacking_;   ///< the members that lack an edge to another member
  std::vector<std::uint8_t> walked_;     ///< for each member: whether walk() has visited it
};

}  // namespace cairn::solvers
