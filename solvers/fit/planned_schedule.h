#pragma once

#include <cstdint>
#include <optional>

#include "cairn/core/plan.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"

namespace cairn::fit {

/// A schedule with its measures and its plan: what every answer of this folder is made of.
struct PlannedSchedule {
  core::Schedule schedule;
  core::Evaluation evaluation;     ///< of the schedule, on the graph as given
  std::optional<core::Plan> plan;  ///< of the schedule, without guards; none where budgets are on peaks

  /// Bytes that a budget is on: of the plan, or of the peak.
  std::int64_t memory() const { return plan ? plan->bytes : evaluation.peak; }
};

}  // namespace cairn::fit
