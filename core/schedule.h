#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"

namespace cairn::core {

/// A copy of a value from the device to the host. A value that is computed more than once has several occurrences; the
/// copied one is the occurrence that step `made` computes. The copy starts when step `start` has ended, and is over
/// before step `finish` begins. The device holds the occurrence's bytes until step `finish` begins, so every step that
/// reads this occurrence must run before step `finish`.
struct Evict {
  ValueId value = kNoValue;
  std::int64_t made = 0;    ///< step that computes the occurrence
  std::int64_t start = 0;   ///< >= made
  std::int64_t finish = 0;  ///< > start, at most the number of steps
  bool operator==(const Evict&) const = default;
};

/// A copy of a value from the host to the device, which makes a new occurrence of the value there. The copy starts when
/// step `start` has ended, and is over before step `finish` begins. The device holds the occurrence's bytes from the
/// end of step `start` on. Steps that read the new occurrence run at step `finish` or later.
struct Fetch {
  std::int32_t evict = -1;  ///< index in Transfers::evicts of the copy on the host
  std::int64_t start = 0;   ///< at least `finish` of the evict, minus 1
  /// Greater than `start`, at most the number of steps. It is the number of steps only if the value is kept and no step
  /// reads the new occurrence.
  std::int64_t finish = 0;
  bool operator==(const Fetch&) const = default;
};

/// The copies between device and host that go with the steps of a schedule. The host holds the copy of an evict from
/// the end of the evict's step `start` until the begin of the last step `finish` of its fetches.
///
/// Occurrences of a value are made by the steps of its node and by fetches. An input is read from the latest occurrence
/// that is available: one that step i computes is available from step i + 1 on, a fetched one from step `finish` on. If
/// a computed and a fetched occurrence become available before the same step, the fetched one counts as later. The
/// occurrence of a kept value that stays in memory at the end is the latest one.
struct Transfers {
  std::vector<Evict> evicts;
  std::vector<Fetch> fetches;
  bool empty() const { return evicts.empty() && fetches.empty(); }
  bool operator==(const Transfers&) const = default;
};

/// A schedule is a sequence of nodes. A node may occur more than once (recomputation). Steps count from 0. The
/// transfers move values from the device to the host and back.
struct Schedule {
  std::vector<NodeId> steps;
  Transfers transfers = {};

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
  /// Index of the evict that copies this occurrence to the host, or -1. Then `last` is the step before the evict's
  /// `finish`, and the bytes are held until that step begins.
  std::int32_t evict = -1;
  /// Index of the fetch that made this occurrence, or -1 if a step computed it. Then `first` is the fetch's `start`,
  /// and the bytes are held from the end of that step on.
  std::int32_t fetch = -1;

  /// First and last moment in memory. Moment 2i is step i, and moment 2i + 1 lies between steps i and i + 1. A
  /// lifetime begins between two steps only if a fetch made the occurrence, and ends there only if an evict copies it.
  std::int64_t first_moment() const { return 2 * first + (fetch >= 0 ? 1 : 0); }
  std::int64_t last_moment() const { return 2 * last + (evict >= 0 ? 1 : 0); }
  bool operator==(const Lifetime&) const = default;
};

/// Returns the lifetimes of the outputs of all steps, ordered by step, then by output. Behind these, the result has the
/// lifetimes of the occurrences that fetches make, in the order of the fetches. O(steps + transfers + inputs and
/// outputs of all steps). Throws InputError on an invalid schedule.
std::vector<Lifetime> lifetimes(const Graph& graph, const Schedule& schedule);

/// Returns the number of steps that run a node again, which is the number of steps minus the number of distinct nodes.
/// O(steps + nodes).
std::int64_t recomputed_steps(const Graph& graph, const Schedule& schedule);

/// Drops steps whose outputs are neither read nor kept, until no such step is left. The schedule must be valid. The
/// peak and the cost of the result are never higher than those of the schedule. If `keep_first` is set, the first
/// occurrence of each node is never dropped. Makes one pass from the last step to the first, which takes O(steps +
/// inputs of all steps) time.
Schedule drop_unread(const Graph& graph, const Schedule& schedule, bool keep_first = false);
/// Says of a step whether it is dropped already, stays only if a later step reads it, or stays in any case.
enum StepMark : std::uint8_t { kDropped, kIfRead, kAlwaysKept };
/// Sets the mark of each step with kIfRead to kDropped if no remaining step after it reads its outputs before they are
/// made again, and if it need not run. `marks` has one StepMark per step. Takes the same time as drop_unread().
void clear_unread(const Graph& graph, std::span<const NodeId> steps, std::span<std::uint8_t> marks);

/// Drops all occurrences of each pinned node except the first, so that the node runs once. If pinned nodes that run
/// again are the only defect of a schedule, the result is valid. O(steps + nodes).
Schedule run_pinned_once(const Graph& graph, Schedule schedule);

}  // namespace cairn::core
