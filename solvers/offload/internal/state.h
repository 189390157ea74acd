#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/link.h"
#include "cairn/core/schedule.h"

/// Stores the transfers of a schedule whose steps are fixed, in a form in which a search can change single transfers.
namespace cairn::solvers::offloading {

/// Describes a range of steps, after step `begin` and before step `end`, in which an occurrence of a value (the output
/// of one run of its node) is needed later, but not read. A gap is offloaded if the value leaves the device during the
/// gap, and a fetch brings it back for step `end`.
struct Gap {
  std::int32_t occurrence = -1;
  std::int32_t begin = 0;
  std::int32_t end = 0;     ///< step that reads the value next, or the number of steps if the value is kept to the end
  std::int32_t start = -1;  ///< `start` of the fetch, or -1 if the gap is not offloaded
  bool offloaded() const { return start >= 0; }
};

/// Describes an occurrence of a value that may be offloaded. Its gaps are consecutive and ascend.
struct Occurrence {
  core::ValueId value = core::kNoValue;
  std::int32_t made = 0;
  std::int32_t start = 0;   ///< `start` of the evict; without meaning if no gap is offloaded
  std::int32_t finish = 0;  ///< `finish` of the evict
  std::int32_t first_gap = 0, gap_count = 0;
  std::int64_t bytes = 0;
  std::int64_t time = 0;  ///< core::copy_cost() of the value
};

/// Stores the transfers of one occurrence, so that a change can be undone.
struct Saved {
  std::int32_t occurrence = -1;
  std::int32_t start = 0, finish = 0;
  std::vector<std::int32_t> starts;  ///< Gap::start of each gap of the occurrence
};

struct Limits {
  core::Link link;
  std::int64_t budget = 0;  ///< largest number of bytes on the device
  std::int64_t host_budget = std::numeric_limits<std::int64_t>::max();
};

/// Tells for which transfer a step waits, and how long.
struct Wait {
  std::int32_t step = 0;  ///< the step that waits, or the number of steps if the end of the schedule waits
  std::int64_t time = 0;
  std::int32_t gap = -1;         ///< gap whose fetch the step waits for, or -1
  std::int32_t occurrence = -1;  ///< occurrence whose evict the step waits for, or -1
};

/// Holds a schedule's steps and transfers, and keeps track of its memory and times. Moments are numbered as in
/// core::Lifetime: moment 2i is step i, and moment 2i + 1 lies between steps i and i + 1. Not thread-safe.
class State {
 public:
  /// Builds the state of a valid schedule without transfers. O(steps + inputs of all steps).
  State(const core::Graph& graph, std::vector<core::NodeId> steps, const Limits& limits);

  const Limits& limits() const { return limits_; }
  std::int32_t length() const { return static_cast<std::int32_t>(steps_.size()); }
  const std::vector<core::NodeId>& steps() const { return steps_; }
  std::span<const Gap> gaps() const { return gaps_; }
  std::span<const Occurrence> occurrences() const { return occurrences_; }
  const Gap& gap(std::int32_t g) const { return gaps_[g]; }
  const Occurrence& occurrence(std::int32_t o) const { return occurrences_[o]; }
  std::int64_t step_cost(std::int32_t i) const { return costs_[i]; }

  std::int64_t bytes_at(std::int64_t moment) const { return profile_[moment]; }
  std::int64_t host_at(std::int32_t step) const { return host_[step]; }  ///< bytes on the host after a step
  /// Returns the sum over all moments of the bytes above the device's budget, plus the sum over all steps of the bytes
  /// above the host's budget.
  std::int64_t excess() const { return excess_; }
  bool fits() const { return excess_ == 0; }
  /// Returns the first moment at or after `from` with more bytes on the device than the budget, or -1. O(moments).
  std::int64_t first_violation(std::int64_t from) const;

  /// Returns the first offloaded gap of an occurrence, or -1.
  std::int32_t first_offloaded(std::int32_t occurrence) const;

  Saved save(std::int32_t occurrence) const;
  void restore(const Saved& saved);
  /// Offloads a gap, with `start` as the start of its fetch. If `start` is -1, the gap is no longer offloaded. Adapts
  /// the times of the evict so that they stay valid: its `finish` is at least the step after the last read on the
  /// device, and at most `start`.
  void set_fetch(std::int32_t gap, std::int32_t start);
  /// Sets the times of an occurrence's evict to the nearest valid times.
  void set_evict(std::int32_t occurrence, std::int32_t start, std::int32_t finish);

  /// Returns the makespan. If `waits` is given, appends to it each step that waits for a transfer. O(steps +
  /// transfers).
  std::int64_t makespan(std::vector<Wait>* waits = nullptr);
  /// Returns the sum of the times of all copies.
  std::int64_t copy_time() const { return copy_time_; }
  std::int64_t compute() const { return compute_; }

  /// Returns the steps with their transfers.
  core::Schedule schedule() const;
  /// Replaces all transfers by those of `from`, which must be transfers between steps of this state. Leaves out fetches
  /// that match no gap.
  void assign(const core::Transfers& from);

 private:
  void occupy(const Occurrence& occurrence, int sign);
  void add(std::int64_t first, std::int64_t last, std::int64_t bytes);
  void add_host(std::int32_t first, std::int32_t last, std::int64_t bytes);
  void adapt(Occurrence& occurrence);
  void sort_copies();

  std::vector<core::NodeId> steps_;
  Limits limits_;
  std::vector<std::int64_t> costs_;
  std::vector<Occurrence> occurrences_;
  std::vector<Gap> gaps_;
  std::vector<std::int64_t> profile_;
  std::vector<std::int64_t> host_;
  std::int64_t excess_ = 0, copy_time_ = 0, compute_ = 0;

  // Work arrays of makespan(). Copies are numbered: o is the evict of occurrence o, and the number of occurrences plus
  // g is the fetch of gap g.
  struct Copy {
    std::int32_t start, finish, number;
    auto operator<=>(const Copy&) const = default;
  };
  std::vector<Copy> copies_;
  std::vector<std::int64_t> due_, done_;
  std::vector<std::int32_t> due_by_;
};

}  // namespace cairn::solvers::offloading
