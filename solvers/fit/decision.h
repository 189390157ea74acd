#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/fit/fit_to_budget.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/plan/planner.h"

namespace cairn::fit {

/// A schedule with its plan, and who made it: all that an execution needs.
struct Decision {
  std::string solver;
  core::Schedule schedule;
  core::Plan plan;                  ///< the one executed: with guards, if asked for
  std::int64_t guard_bytes = 0;     ///< behind every buffer of the plan
  std::int64_t budgeted_bytes = 0;  ///< of the plan without guards, which the budget is on
  core::Evaluation evaluation;      ///< on the graph as given
  std::int64_t predicted_peak = 0;  ///< with sizes rounded up to the alignment: what the plan needs at least
};

/// Plans a schedule, unless `plan` (without guards) is known, and evaluates it.
Decision decide_on(const core::Graph& graph, std::string solver, core::Schedule schedule,
                   const solvers::PlanOptions& options, std::optional<core::Plan> plan = std::nullopt);
/// The graph's input order.
Decision decide_on_baseline(const core::Graph& graph, const solvers::PlanOptions& options);

/// From a problem with a budget to a schedule whose plan fits. Throws core::Error, with what is known in one line,
/// where none is found; DefectError as solve().
Decision decide(const Problem& problem, std::string_view solver = "auto", const FitOptions& options = {});

}  // namespace cairn::fit
