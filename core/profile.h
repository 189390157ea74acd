#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

namespace cairn::core {

/// The first defect of a schedule, or none. Without transfers, first the steps are checked one by one, and then whether
/// every required node runs. With transfers, defects are looked for in this order:
/// 1. the first evict that is wrong whatever the other transfers are; an occurrence that is evicted twice; the first
///    fetch that is wrong whatever the other fetches are;
/// 2. the first step that runs an unknown node; the first step with any other defect; required nodes that never run;
/// 3. kept values on the host at the end; the first fetch that nothing reads; the first evict that nothing fetches.
struct Defect {
  enum class Kind : std::uint8_t {
    none,
    unknown_node,
    missing_input,
    missing_node,
    pinned_again,
    // Defects that only schedules with transfers can have:
    bad_evict,      ///< `reason` says why
    bad_fetch,      ///< `reason` says why
    input_on_host,  ///< a step reads a value that was evicted to the host and not fetched back
    kept_on_host,   ///< a kept value is on the host at the end
  };
  /// What is wrong with an evict or a fetch. If several reasons apply, the first in this order is named.
  enum class Reason : std::uint8_t {
    none,
    unknown_value,   ///< there is no such value, or no such evict
    pinned,          ///< the value's node is pinned
    in_place,        ///< another output takes over the value's storage
    no_bytes,        ///< the value has size 0
    not_made,        ///< step `made` is not a step that computes the value
    starts_early,    ///< an evict starts before the value is made, or a fetch before its evict is over
    finishes_early,  ///< `finish` is not after `start`
    finishes_late,   ///< `finish` is after the end, or a fetch finishes at the end and the value is not kept
    twice,           ///< two evicts of one occurrence
    unread,          ///< nothing fetches the copy on the host, or nothing reads the fetched value and it is not kept
  };
  Kind kind = Kind::none;
  std::int64_t step = -1;  ///< step of the defect; -1 for missing_node, kept_on_host and defects of transfers
  /// For unknown_node, the number that is not a node. For missing_node, the required node that never runs. For defects
  /// of transfers and kept_on_host, the node of the value; kNoNode if there is no such value or no such evict.
  NodeId node = kNoNode;
  NodeId input = kNoNode;      ///< for missing_input and input_on_host, the node that should have run before
  std::int64_t transfer = -1;  ///< index of the bad evict or fetch
  Reason reason = Reason::none;
  bool operator==(const Defect&) const = default;
};
std::string describe(const Graph& graph, const Defect& defect);

/// The results of evaluating a schedule: memory in bytes, cost in the graph's unit. If the schedule is invalid, only
/// `defect` has a meaning.
struct Evaluation {
  Defect defect;
  /// Largest entry of profile(): the number of bytes in memory while a step runs or, where copies run, between two
  /// steps; 0 for the empty schedule.
  std::int64_t peak = 0;
  /// First step during which the peak is reached; in a schedule with transfers, during which or right after which it is
  /// reached. -1 for the empty schedule.
  std::int64_t peak_step = -1;
  /// Sum of the costs of all steps. If the schedule has transfers and the graph knows its host_memory(), it is the
  /// makespan (timeline.h), which also counts the time that steps wait for copies.
  std::int64_t cost = 0;
  std::int64_t waiting = 0;     ///< part of `cost` in which no step runs
  std::int64_t host_peak = 0;   ///< largest number of bytes that copies hold on the host
  std::int64_t recomputed = 0;  ///< number of steps that run a node again
  bool valid() const { return defect.kind == Defect::Kind::none; }
};

/// Evaluates schedules in O(values + steps + inputs and outputs of all steps). Allocates memory only if a schedule is
/// longer than all schedules that the object evaluated before. The object holds work arrays, so each thread needs its
/// own. The graph must outlive the object.
class Evaluator {
 public:
  explicit Evaluator(const Graph& graph);

  Evaluation evaluate(std::span<const NodeId> steps);
  /// Works like evaluate(steps), and also evaluates the transfers, in O(transfers) additional time.
  Evaluation evaluate(const Schedule& schedule);

  /// Returns the memory over time in bytes: (0, during(1), after(1), ..., during(T), after(T)) for T steps. during(i)
  /// is the memory while step i runs. after(i) is the memory once step i has freed the values that no later step needs.
  /// Throws InputError if the schedule is invalid.
  std::vector<std::int64_t> profile(std::span<const NodeId> steps);
  /// Works like profile(steps), and also counts the bytes that transfers hold: after(i) includes the device bytes of
  /// copies that run between steps i and i + 1.
  std::vector<std::int64_t> profile(const Schedule& schedule);

 private:
  /// Fills the work arrays. They have a meaning only if the returned Defect is `none`. kSingle says whether every node
  /// has one output. kPinned says whether some node is pinned.
  template <bool kSingle, bool kPinned>
  Defect trace(std::span<const NodeId> steps);
  Defect trace(std::span<const NodeId> steps);

  const Graph owner_;
  GraphView graph_;
  bool pinned_;  ///< whether any node is pinned
  /// For each value, the last step that reads the result of its latest computation, or the step that computed it if
  /// nothing reads this result. -1 if the value was not computed.
  std::vector<std::int32_t> last_read_;
  std::vector<std::int64_t> freed_;  ///< bytes freed after each step; the last entry is unused
  std::int64_t recomputed_ = 0;
};

/// Evaluates one schedule. To evaluate many, use one Evaluator, which keeps its work arrays.
Evaluation evaluate(const Graph& graph, const Schedule& schedule);

/// Returns a lower bound in bytes on the peak of every schedule. It is the larger of two numbers: the largest working
/// set of a node (its inputs, outputs and scratch), and the total size of kept outputs. O(nodes + edges).
std::int64_t peak_lower_bound(const Graph& graph);

/// Explains peak_lower_bound() by a list of the values and the scratch that every schedule must have in memory at one
/// moment.
struct PeakBound {
  enum class Kind : std::uint8_t { input, output, scratch, kept };
  struct Part {
    Kind kind = Kind::input;
    ValueId value = kNoValue;  ///< value that the part holds; kNoValue: the node's scratch
    std::int64_t bytes = 0;    ///< size, not 0; negative for scratch of a node that takes over the storage of inputs
    bool operator==(const Part&) const = default;
  };
  std::int64_t bytes = 0;  ///< peak_lower_bound(), the sum of the parts
  /// First node whose working set is the bound. kNoNode if the bound is the total size of all kept outputs.
  NodeId node = kNoNode;
  std::vector<Part> parts;  ///< inputs, then outputs, then scratch; the largest first within a kind
};
std::string_view to_string(PeakBound::Kind kind);
/// Returns the lower bound and the parts that explain it. O(nodes + edges + k log k) for k parts.
PeakBound explain_peak_lower_bound(const Graph& graph);
/// Describes the bound, for example "'d' needs its inputs 'c' (20 B), 'a' (20 B), 3 more (4 B), its output (10 B) and
/// scratch (5 B) in memory together".
std::string describe(const Graph& graph, const PeakBound& bound);

}  // namespace cairn::core
