#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/fit/fit_to_budget.h"
#include "cairn/solvers/fit/planned_schedule.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/plan/planner.h"

namespace cairn::fit {

/// Holds what is needed to execute a graph: a schedule with its plan, and the name of the solver that found the
/// schedule. The schedule always has a plan; memory() is its height, which the budget limits.
struct Decision : PlannedSchedule {
  std::string solver;
  std::int64_t guard_bytes = 0;       ///< unused bytes behind every buffer of `guarded`
  std::optional<core::Plan> guarded;  ///< plan with guards; set if the options ask for them
  /// Peak of the schedule in bytes, with sizes rounded up to the alignment.
  std::int64_t predicted_peak = 0;
  std::int64_t overlap_steps = 0;  ///< steps for which a finished buffer stays reserved (solvers::PlanOptions)
  std::int64_t overlap_bytes = 0;  ///< part of memory() that a plan without overlap_steps would not need

  /// Returns the plan to execute: the plan with guards, if there is one.
  const core::Plan& executed_plan() const { return guarded ? *guarded : plan.value(); }
};

/// Evaluates a schedule and plans it, unless `plan`, its plan without guards, is given. If the options ask for guards
/// (unused bytes behind every buffer), plans the schedule again, with guards. If the options ask for overlap_steps,
/// also plans the schedule without them, to find out how many bytes they cost.
Decision decide_on(const core::Graph& graph, std::string solver, core::Schedule schedule,
                   const solvers::PlanOptions& options, std::optional<core::Plan> plan = std::nullopt);
/// Evaluates a given schedule. `offsets` are the offsets of its buffers in a known plan (core::offsets_of()), or empty.
/// Plans the schedule anew if there are no offsets, if they do not fit the graph and the alignment, or if the known
/// plan exceeds the problem's budget.
Decision decide_on_given(const Problem& problem, std::string solver, core::Schedule schedule,
                         const std::vector<std::int64_t>& offsets, const solvers::PlanOptions& options);
/// Evaluates and plans the graph's input order.
Decision decide_on_baseline(const core::Graph& graph, const solvers::PlanOptions& options);

/// Finds a schedule whose plan fits into the problem's budget. Throws core::Error with a one-line explanation if no
/// such schedule is found. Throws DefectError if the answer of the solver is wrong.
Decision decide(const Problem& problem, std::string_view solver = "auto", const FitOptions& options = {});

}  // namespace cairn::fit
