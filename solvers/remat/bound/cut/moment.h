#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/common/bound.h"

namespace cairn::solvers {

/// Stores facts about one *moment*, the first run of a node p. The facts hold for all schedules within a budget that
/// follow an order rule.
struct Moment {
  /// Finds these facts for the moment of `node`. Takes O(n + m) time for n nodes and m edges.
  Moment(const core::Graph& graph, core::NodeId node, std::int64_t budget, OrderRule order);

  /// Returns whether node v has run before the moment in every schedule. If so, a run of v after the moment adds its
  /// cost to the cost of running each node once.
  bool is_before(core::NodeId v) const { return before[v] != 0; }
  /// Returns whether a node can only run at the moment or later.
  bool is_after(core::NodeId v) const { return after[v] != 0; }

  core::NodeId node;
  std::vector<std::uint8_t> after, before;  ///< for each node; see is_after() and is_before()
  /// Indexed by value: whether the value is needed after the moment, because it is kept or because a node that is after
  /// the moment reads it. False for values of nodes that are themselves after the moment.
  std::vector<std::uint8_t> needed;
  /// Indexed by value: whether the value takes no bytes of `room`, because p reads it, so that it is in memory at the
  /// moment anyway, or because it has 0 bytes.
  std::vector<std::uint8_t> free;
  std::int64_t room = 0;  ///< bytes of the budget that are left beside the inputs, outputs and scratch of p
};

}  // namespace cairn::solvers
