#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::core {

/// A sequence of nodes. A node may occur more than once (recomputation). Steps count from 0.
struct Schedule {
  std::vector<NodeId> steps;

  std::int64_t length() const { return static_cast<std::int64_t>(steps.size()); }
  bool operator==(const Schedule&) const = default;
};

/// Returns the baseline, which runs every node once, in the graph's input order.
Schedule baseline_schedule(const Graph& graph);

/// Lifetime of one output of the occurrence of `node` at step `first`: it is in memory during the closed range of steps
/// [first, last]. `last` is the number of steps for the last occurrence of a kept output, and `first` for an output
/// that nobody reads.
struct Lifetime {
  NodeId node = kNoNode;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int32_t output = 0;
  bool operator==(const Lifetime&) const = default;
};

/// Returns the lifetimes of all outputs of all steps, ordered by step, then output. O(T + sum of in-degrees and
/// outputs). Throws InputError on an invalid schedule.
std::vector<Lifetime> lifetimes(const Graph& graph, const Schedule& schedule);

/// Number of steps that run a node again, which is T minus the number of distinct nodes. O(T + n).
std::int64_t recomputed_steps(const Graph& graph, const Schedule& schedule);

/// Drops occurrences whose outputs are neither read nor kept, until there are none: one backward pass, O(T + sum of
/// in-degrees). The schedule must be valid; peak and cost never rise. `keep_first`: the first run of each node stays in
/// any case.
Schedule drop_unread(const Graph& graph, const Schedule& schedule, bool keep_first = false);

/// Drops all occurrences of each pinned node but the first, so that it runs once. A schedule that was otherwise valid
/// becomes valid. O(T + n).
Schedule run_pinned_once(const Graph& graph, Schedule schedule);

}  // namespace cairn::core
