#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/common/bound.h"

namespace cairn::solvers {

/// What holds for all schedules within a budget that follow an order rule at one *moment*: during the first run of a
/// node p.
struct Moment {
  /// Takes O(n + m) time for n nodes and m edges.
  Moment(const core::Graph& graph, core::NodeId node, std::int64_t budget, OrderRule order);

  /// Returns whether a node has run before the moment for certain, so that another run costs its cost in addition to
  /// that of running each node once.
  bool is_before(core::NodeId v) const { return before[v] != 0; }
  /// Returns whether a node can only run at the moment or later.
  bool is_after(core::NodeId v) const { return after[v] != 0; }

  core::NodeId node;
  std::vector<std::uint8_t> after, before;  ///< for each node; see is_after() and is_before()
  /// For each value of a node that is not after the moment, whether it is needed after the moment: it is kept, or a
  /// node that is after the moment reads it.
  std::vector<std::uint8_t> needed;
  /// For each value, whether it is in memory at the moment for certain, or takes no memory: p reads it, or it has no
  /// bytes.
  std::vector<std::uint8_t> free;
  std::int64_t room = 0;  ///< bytes of the budget that are left beside the inputs, outputs and scratch of p
};

}  // namespace cairn::solvers
