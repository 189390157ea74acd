#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::core {

/// A sequence of nodes; a node may stand in it more than once (recomputation). Steps count from 0.
struct Schedule {
  std::vector<NodeId> steps;

  std::int64_t length() const { return static_cast<std::int64_t>(steps.size()); }
  bool operator==(const Schedule&) const = default;
};

/// The baseline: every node once, in the graph's input order.
Schedule baseline_schedule(const Graph& graph);

/// The occurrence at step `first` of `node`: it is in memory during the closed range of steps [first, last].
/// `last` is the number of steps for the last occurrence of a kept node, `first` for one that nobody reads.
struct Lifetime {
  NodeId node = kNoNode;
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool operator==(const Lifetime&) const = default;
};

/// One lifetime a step, in step order. O(T + sum of in-degrees). Throws InputError on an invalid schedule.
std::vector<Lifetime> lifetimes(const Graph& graph, const Schedule& schedule);

/// Steps whose node stood before: T minus the number of distinct nodes. O(T + n).
std::int64_t recomputed_steps(const Graph& graph, const Schedule& schedule);

/// Drops every occurrence that nothing reads and nobody keeps, until none is left: one backward pass,
/// O(T + sum of in-degrees). The schedule must be valid; peak and cost never rise.
Schedule drop_unread(const Graph& graph, const Schedule& schedule);

}  // namespace cairn::core
