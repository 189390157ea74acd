#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"

namespace cairn::fit {

/// Returns whether planning a schedule takes so little time that it is worth doing after Ctrl-C or a failure.
inline bool is_planned_quickly(const core::Schedule& schedule) {
  constexpr std::int64_t kSteps = 20'000;  // planned within about 0.2 s
  return schedule.length() <= kSteps;
}

struct PlannedSchedule {
  PlannedSchedule() = default;
  /// Evaluates the schedule `of`, which must be valid. Does not check that `found` is a plan of this schedule. Takes
  /// O(length * in-degree) time for a schedule of `length` steps.
  PlannedSchedule(const core::Graph& graph, core::Schedule of, std::optional<core::Plan> found)
      : schedule(std::move(of)), evaluation(core::evaluate(graph, schedule)), plan(std::move(found)) {}

  core::Schedule schedule;
  core::Evaluation evaluation;  ///< peak and cost of the schedule, with sizes not rounded up to the alignment
  /// Addresses of the schedule's buffers, without guards (unused bytes behind each buffer); empty if budgets limit
  /// peaks instead of plans.
  std::optional<core::Plan> plan;

  /// Returns the number of bytes that a budget limits: the height of the plan or, if there is no plan, the peak.
  std::int64_t memory() const { return plan ? plan->bytes : evaluation.peak; }

  /// Returns whether this schedule needs less memory than `other` or, if both need the same memory, costs less than
  /// `other`.
  bool is_below(const PlannedSchedule& other) const {
    return std::pair(memory(), evaluation.cost) < std::pair(other.memory(), other.evaluation.cost);
  }
};

}  // namespace cairn::fit
