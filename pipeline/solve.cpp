#include "cairn/pipeline/solve.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cairn/core/limit.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::pipeline {
void require_right(const std::string& defect) {
  if (!defect.empty()) throw DefectError(fmt::format("the plan is wrong: {}; please report this", defect));
}

core::Evaluation evaluate_again(std::string_view solver, const core::Graph& graph, const solvers::Solution& solution) {
  const core::Evaluation evaluation = core::evaluate(graph, solution.schedule);
  if (!evaluation.valid())
    throw DefectError(fmt::format("solver '{}' returned an invalid schedule: {}; please report this", solver,
                                  core::describe(graph, evaluation.defect)));
  if (evaluation.peak != solution.peak || evaluation.cost != solution.cost)
    throw DefectError(
        fmt::format("solver '{}' reports peak {} and cost {}, but its schedule has {} and {}; please report this",
                    solver, solution.peak, solution.cost, evaluation.peak, evaluation.cost));
  return evaluation;
}

bool meets(const solvers::Solution& solution, std::optional<std::int64_t> budget) {
  const bool found = solution.status == solvers::Status::optimal || solution.status == solvers::Status::feasible;
  return found && (!budget || solution.peak <= *budget);
}

Solved solve(const core::Graph& graph, const solvers::SolverInfo& solver, const solvers::SolveOptions& options) {
  Solved solved;
  const core::Stopwatch watch(options.limit);
  solved.solution = solver.solve(graph, options);
  solved.seconds = watch.seconds();
  if (solved.within(std::nullopt) || !solved.solution.schedule.steps.empty())
    solved.evaluation = evaluate_again(solver.name, graph, solved.solution);
  return solved;
}

solvers::PlanSolution checked_plan(const core::Graph& graph, const core::Schedule& schedule,
                                   const solvers::PlanOptions& options) {
  solvers::PlanSolution found = solvers::find_plan(solvers::plan_problem(graph, schedule), options);
  require_right(core::check_plan(graph, schedule, found.plan));
  return found;
}

solvers::PlanSolution checked_plan(const std::vector<core::BufferSpec>& specs,
                                   const std::vector<core::AddressRange>& forbidden,
                                   const solvers::PlanOptions& options) {
  const std::string contradiction = core::check_fixed_offsets(specs, forbidden, options.alignment, options.capacity);
  if (!contradiction.empty()) throw core::InputError(contradiction);
  solvers::PlanProblem problem = solvers::plan_problem(specs);
  problem.forbidden = forbidden;
  solvers::PlanSolution found = solvers::find_plan(problem, options);
  for (std::size_t i = 0; i < specs.size(); ++i) {  // as given, not as ranks
    found.plan.buffers[i].first = specs[i].lower;
    found.plan.buffers[i].last = specs[i].upper - 1;
  }
  require_right(core::check_specs(specs, forbidden, found.plan, options.guard_bytes));
  return found;
}

solvers::Status FoundPlan::status() const {
  if (capacity && solution.lower_bound > *capacity) return solvers::Status::infeasible;
  if (!fits()) return solvers::Status::not_found;
  return solution.plan.bytes == solution.lower_bound ? solvers::Status::optimal : solvers::Status::feasible;
}

bool has_ops(const core::Graph& graph) {
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.op(v) != nullptr) return true;
  }
  return false;
}

std::int64_t default_alignment(const core::Graph& graph) { return has_ops(graph) ? 256 : 1; }

double share_for_search(const core::Graph& graph, double seconds) {
  // A first plan takes some 5 us a step; schedules are longer than the graph, and may need more than one.
  constexpr double kSecondsOfNode = 2e-5, kMost = 0.9, kLeast = 0.3;
  return std::clamp(1 - kSecondsOfNode * graph.node_count() / std::max(seconds, 1e-3), kLeast, kMost);
}

FitOptions patient(const core::Graph& graph, solvers::SolveOptions search, solvers::PlanOptions plan) {
  constexpr std::int64_t kWork = 150'000'000;  // a quarter of a second: several schedules are planned
  plan.limit.work = std::min(plan.limit.work, kWork);
  const double most = share_for_search(graph, search.limit.seconds);
  const int rounds = search.limit.counts_work() ? 6 : 16;  // each of the whole work, or of a part of the time
  const double secure_share = search.limit.counts_work() ? 1 : 0.92;
  return {.search = std::move(search),
          .plan = std::move(plan),
          .max_rounds = rounds,
          .share = std::min(0.5, most),
          .later_share = std::min(0.75, most),
          .first_share = 0.05,
          .secure_share = secure_share};
}

Decision decide_on(const core::Graph& graph, std::string solver, core::Schedule schedule,
                   const solvers::PlanOptions& options, std::optional<core::Plan> plan) {
  solvers::PlanOptions without_guards = options;
  without_guards.guard_bytes = 0;
  Decision decision;
  decision.solver = std::move(solver);
  decision.schedule = std::move(schedule);
  decision.plan = plan ? *std::move(plan) : solvers::plan_memory(graph, decision.schedule, without_guards);
  decision.budgeted_bytes = decision.plan.bytes;
  decision.guard_bytes = options.guard_bytes;
  if (options.guard_bytes > 0) decision.plan = solvers::plan_memory(graph, decision.schedule, options);
  decision.evaluation = core::evaluate(graph, decision.schedule);
  decision.predicted_peak = core::evaluate(core::align_sizes(graph, options.alignment), decision.schedule).peak;
  return decision;
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
                 : fmt::format("the lower bound is {} bytes, and the least budget known feasible is {} bytes",
                               rounded.lower_bound,
                               least_known(problem, rounded, solvers::find_solver(solver), std::move(fit.least),
                                           {.search = options.search, .plan = options.plan})
                                   .bytes)));
  evaluate_again(solver, rounded.graph, fit.solution);
  return decide_on(problem.graph, std::string(solver), std::move(fit.solution.schedule), options.plan,
                   std::move(fit.plan));
}

}  // namespace cairn::pipeline
