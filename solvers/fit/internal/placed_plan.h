#pragma once

#include <cstdint>
#include <optional>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/solvers/remat/anneal/placed_search.h"

/// Makes plans of schedules, including schedules whose buffers already have addresses (solvers::PlacedSchedule).
namespace cairn::fit {

/// Returns the plan of the schedule options.search.start with the offsets options.search.start_offsets. Returns nothing
/// if one of the two is not given, or if the offsets are not valid for this graph and alignment.
std::optional<core::Plan> plan_of_start(const core::Graph& graph, const solvers::SolveOptions& options,
                                        const solvers::PlanOptions& planning);
/// Plans a schedule. If the scope allows any order, also plans other orders of the same steps, as
/// solvers::plan_some_order() does.
solvers::PlannedOrder plan_within(const solvers::Scope& scope, const core::Graph& graph, const core::Schedule& schedule,
                                  const solvers::PlanOptions& options);
/// Makes the plan in which the buffers lie at the offsets in `placed`, and checks it. Throws InputError if the offsets
/// are not valid addresses for the schedule's buffers, and DefectError if the plan is wrong.
core::Plan plan_of(const core::Graph& graph, const solvers::PlacedSchedule& placed,
                   const solvers::PlanOptions& options);

}  // namespace cairn::fit
