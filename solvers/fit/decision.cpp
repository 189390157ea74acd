#include "cairn/solvers/fit/decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/solvers/fit/solve.h"

namespace cairn::fit {

Decision decide_on(const core::Graph& graph, std::string solver, core::Schedule schedule,
                   const solvers::PlanOptions& options, std::optional<core::Plan> plan) {
  solvers::PlanOptions without_guards = options;
  without_guards.guard_bytes = 0;
  if (!plan) plan = solvers::plan_memory(graph, schedule, without_guards);
  Decision decision{PlannedSchedule(graph, std::move(schedule), std::move(plan))};
  decision.solver = std::move(solver);
  decision.overlap_steps = options.overlap_steps;
  if (options.overlap_steps > 0) {
    without_guards.overlap_steps = 0;
    const core::Plan closer = solvers::plan_memory(graph, decision.schedule, without_guards);
    decision.overlap_bytes = std::max<std::int64_t>(0, decision.memory() - closer.bytes);
  }
  decision.guard_bytes = options.guard_bytes;
  if (options.guard_bytes > 0) decision.guarded = solvers::plan_memory(graph, decision.schedule, options);
  decision.predicted_peak = core::evaluate(core::align_sizes(graph, options.alignment), decision.schedule).peak;
  return decision;
}

Decision decide_on_given(const Problem& problem, std::string solver, core::Schedule schedule,
                         const std::vector<std::int64_t>& offsets, const solvers::PlanOptions& options) {
  std::optional<core::Plan> plan = plan_at(problem.graph, schedule, offsets, options.alignment, options.overlap_steps);
  if (plan && problem.budget && plan->bytes > *problem.budget) plan.reset();
  return decide_on(problem.graph, std::move(solver), std::move(schedule), options, std::move(plan));
}

Decision decide_on_baseline(const core::Graph& graph, const solvers::PlanOptions& options) {
  return decide_on(graph, "baseline", core::baseline_schedule(graph), options);
}

Decision decide(const Problem& problem, std::string_view solver, const FitOptions& options) {
  if (!problem.budget) throw core::InputError("a schedule that fits needs a budget, as 1.5GiB or 80%");
  const Problem rounded = problem.rounded_up(options.plan.alignment);
  Fit fit = fit_to_budget(problem, rounded, solvers::find_solver(solver), options);
  if (!fit.fits() && options.search.limit.stop != nullptr && *options.search.limit.stop)
    throw core::InterruptedError(fmt::format("the search for a schedule of '{}' was interrupted", problem.name));
  if (!fit.fits())
    throw core::Error(fmt::format(
        "found no schedule of '{}' whose plan fits into {} bytes: {}", problem.name, fit.budget,
        fit.plan ? fmt::format("the lowest plan needs {} bytes", fit.plan->bytes)
                 : fmt::format("the lower bound is {} bytes, and the least budget known to suffice is {} bytes",
                               rounded.lower_bound,
                               least_known(problem, rounded, solvers::find_solver(solver), std::move(fit.least),
                                           {.search = options.search, .plan = options.plan})
                                   .memory())));
  evaluate_again(solver, rounded.graph, fit.solution);
  return decide_on(problem.graph, std::string(solver), std::move(fit.solution.schedule), options.plan,
                   std::move(fit.plan));
}

}  // namespace cairn::fit
