#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::core {

/// A sequence of nodes. A node may occur more than once (recomputation). Steps count from 0.
struct Schedule {
  std::vector<NodeId> steps;

  std::int64_t length() const { return static_cast<std::int64_t>(steps.size()); }
  bool operator==(const Schedule&) const = default;
};

/// Returns the baseline schedule, which runs every node once, in the graph's input order.
Schedule baseline_schedule(const Graph& graph);

/// Lifetime of one output of `node`, which ran at step `first`. The output is in memory during the closed range of
/// steps [first, last]. For the last occurrence of a kept output, `last` is the number of steps. For an output that
/// nothing reads, `last` is `first`.
struct Lifetime {
  NodeId node = kNoNode;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int32_t output = 0;
  bool operator==(const Lifetime&) const = default;
};

/// Returns the lifetimes of the outputs of all steps, ordered by step, then by output. O(steps + inputs and outputs of
/// all steps). Throws InputError on an invalid schedule.
std::vector<Lifetime> lifetimes(const Graph& graph, const Schedule& schedule);

/// Returns the number of steps that run a node again, which is the number of steps minus the number of distinct nodes.
/// O(steps + nodes).
std::int64_t recomputed_steps(const Graph& graph, const Schedule& schedule);

/// Drops steps whose outputs are neither read nor kept, until no such step is left. The schedule must be valid. The
/// peak and the cost of the result are never higher than those of the schedule. If `keep_first` is set, the first
/// occurrence of each node is never dropped. Makes one pass from the last step to the first, which takes O(steps +
/// inputs of all steps) time.
Schedule drop_unread(const Graph& graph, const Schedule& schedule, bool keep_first = false);

/// Drops all occurrences of each pinned node except the first, so that the node runs once. If pinned nodes that run
/// again are the only defect of a schedule, the result is valid. O(steps + nodes).
Schedule run_pinned_once(const Graph& graph, Schedule schedule);

}  // namespace cairn::core
