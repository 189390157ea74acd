#pragma once

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/solvers/remat/anneal/placed_search.h"

/// Between plans and what solvers::search_placed begins with and finds.
namespace cairn::fit {

/// The schedule where its plan has it.
solvers::PlacedSchedule placed_as(const core::Schedule& schedule, const core::Plan& plan);
/// The plan of it, checked. Throws DefectError where it is wrong.
core::Plan plan_of(const core::Graph& graph, const solvers::PlacedSchedule& placed,
                   const solvers::PlanOptions& options);

}  // namespace cairn::fit
