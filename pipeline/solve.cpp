#include "cairn/pipeline/solve.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cairn/core/limit.h"

namespace cairn::pipeline {
namespace {

void require_right(const std::string& defect) {
  if (!defect.empty()) throw DefectError(fmt::format("the plan is wrong: {}; please report this", defect));
}

}  // namespace

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

LeastBudget least_feasible(const Problem& problem, const solvers::SolverInfo& solver, const solvers::Solution& solution,
                           solvers::SolveOptions options) {
  constexpr double kQuickSeconds = 5;
  LeastBudget least{problem.baseline.peak, "none"};
  const auto learn = [&](std::int64_t peak, std::string_view by) {
    if (peak > 0 && peak < least.bytes) least = {peak, by};
  };
  learn(solution.least_peak, solution.least_peak_by);
  learn(solution.peak, solver.name);  // plans may have led to another schedule
  std::int64_t proved = core::peak_lower_bound(problem.graph);
  if (solution.peak_bound.scope.contains(options.scope)) proved = std::max(proved, solution.peak_bound.value);
  const bool too_much = problem.budget && least.bytes > *problem.budget && least.bytes > proved;
  const solvers::SolverInfo& all = solvers::find_solver("auto");
  if (problem.graph.node_count() == 0 || (solution.least_peak > 0 && (!too_much || solver.name == all.name)))
    return least;

  options.budget.reset();
  options.own.clear();
  options.limit.seconds = std::min(options.limit.seconds, kQuickSeconds);
  const solvers::Solution quick = solve(problem.graph, all, options).solution;
  learn(quick.least_peak, quick.least_peak_by);
  return least;
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

Fit fit_to_budget(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                  const FitOptions& options) {
  Fit fit;
  fit.budget = problem.budget.value();
  solvers::SolveOptions search = options.search;
  solvers::PlanOptions without_guards = options.plan;
  without_guards.guard_bytes = 0;
  const core::Stopwatch watch(search.limit);
  const std::int64_t least_cut = std::max(fit.budget / 200, options.plan.alignment);
  std::int64_t solver_budget = fit.budget - options.first_cut;
  const auto time_left = [&] { return fit.rounds == 0 || watch.seconds() < options.search.limit.seconds; };
  while (fit.rounds < options.max_rounds && solver_budget > 0 && !watch.interrupted() && time_left()) {
    ++fit.rounds;
    search.budget = solver_budget;
    search.limit.seconds = (options.search.limit.seconds - watch.seconds()) / 2;
    solvers::Solution solution = solver.solve(rounded.graph, search);
    if (!meets(solution, solver_budget)) {
      if (!fit.plan) fit.solution = std::move(solution);
      break;
    }
    without_guards.capacity = fit.budget;
    auto [schedule, found] = solvers::plan_some_order(problem.graph, solution.schedule, without_guards);
    if (schedule.steps != solution.schedule.steps) {
      solution.schedule = std::move(schedule);
      solution.peak = core::evaluate(rounded.graph, solution.schedule).peak;
    }
    core::Plan& plan = found.plan;
    const std::int64_t excess = plan.bytes - fit.budget;
    if (!fit.plan || plan.bytes < fit.plan->bytes) {
      fit.solution = std::move(solution);
      fit.plan = std::move(plan);
    }
    if (fit.fits()) break;
    solver_budget -= std::max(excess, least_cut);
  }
  fit.seconds = watch.seconds();
  return fit;
}

core::Plan plan_within_budget(const Problem& problem, const solvers::SolverInfo& solver, const FitOptions& options,
                              Solved& found) {
  solvers::PlanOptions planning = options.plan;
  planning.capacity = problem.budget;
  const double seconds = options.search.limit.seconds;
  planning.limit.seconds = std::min(planning.limit.seconds, std::max(seconds - found.seconds, seconds / 4));
  auto [schedule, planned] = solvers::plan_some_order(problem.graph, found.solution.schedule, planning);
  core::Plan& plan = planned.plan;
  const auto take = [&](core::Schedule better) {
    found.solution.schedule = std::move(better);
    found.evaluation = core::evaluate(problem.graph, found.solution.schedule);
    found.solution.peak = found.evaluation.peak;
    found.solution.cost = found.evaluation.cost;
  };
  if (schedule.steps != found.solution.schedule.steps) take(std::move(schedule));
  if (problem.budget && plan.bytes > *problem.budget) {
    FitOptions rest = options;
    rest.search.limit.seconds = std::max(seconds - found.seconds, seconds / 4);
    rest.first_cut = std::max(plan.bytes - *problem.budget, *problem.budget / 200);
    Fit fit = fit_to_budget(problem, problem.rounded_up(options.plan.alignment), solver, rest);
    found.seconds += fit.seconds;
    if (fit.fits()) {
      take(std::move(fit.solution.schedule));
      found.solution.best_seconds = found.seconds;
      if (found.solution.status == solvers::Status::optimal && found.solution.cost > found.solution.cost_bound.value)
        found.solution.status = solvers::Status::feasible;
      plan = *std::move(fit.plan);
    }
  }
  require_right(core::check_plan(problem.graph, found.solution.schedule, plan));
  return std::move(plan);
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
        fit.plan
            ? fmt::format("the lowest plan needs {} bytes", fit.plan->bytes)
            : fmt::format("the lower bound is {} bytes, and the least budget known feasible is {} bytes",
                          rounded.lower_bound,
                          least_feasible(rounded, solvers::find_solver(solver), fit.solution, options.search).bytes)));
  evaluate_again(solver, rounded.graph, fit.solution);
  return decide_on(problem.graph, std::string(solver), std::move(fit.solution.schedule), options.plan,
                   std::move(fit.plan));
}

}  // namespace cairn::pipeline
