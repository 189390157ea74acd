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

/// An output of the occurrence of `node` at step `first`: it is in memory during the closed range of steps [first,
/// last]. `last` is the number of steps for the last occurrence of a kept one, `first` for one that nobody reads.
struct Lifetime {
  NodeId node = kNoNode;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int32_t output = 0;
  bool operator==(const Lifetime&) const = default;
};

/// One lifetime an output of each step, in the order of steps, then outputs: where nodes have one output, one a step.
/// O(T + sum of in-degrees and outputs). Throws InputError on an invalid schedule.
std::vector<Lifetime> lifetimes(const Graph& graph, const Schedule& schedule);

/// Steps whose node stood before: T minus the number of distinct nodes. O(T + n).
std::int64_t recomputed_steps(const Graph& graph, const Schedule& schedule);

/// Drops every occurrence that nothing reads and nobody keeps, until none is left: one backward pass,
/// O(T + sum of in-degrees). The schedule must be valid; peak and cost never rise.
Schedule drop_unread(const Graph& graph, const Schedule& schedule);

/// Drops all occurrences of each pinned node but its first, so that it runs once: what is valid but for that becomes
/// valid. O(T + n).
Schedule run_pinned_once(const Graph& graph, Schedule schedule);

}  // namespace cairn::core
