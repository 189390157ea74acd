#include "cairn/pipeline/objective.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "cairn/solvers/remat/cost_bound.h"

namespace cairn::pipeline {
namespace {

bool interrupted(const solvers::SolveOptions& search) {
  return search.limit.stop != nullptr && search.limit.stop->load();
}

/// The plan of what was found for its peak's sake. A long one that is no answer is not waited for.
void plan_found(const Task& task, const solvers::SolveOptions& search, Answer& answer) {
  constexpr std::int64_t kQuicklyPlanned = 20'000;  // steps
  const solvers::Solution& solution = answer.found.solution;
  if ((interrupted(search) || !answer.success) && solution.schedule.length() > kQuicklyPlanned) return;
  solvers::PlanOptions options{.alignment = task.alignment};
  options.limit.stop = search.limit.stop;
  options.limit.seconds = std::max(0.0, search.limit.seconds - answer.found.seconds);
  if (interrupted(search)) options.limit.work = 0;
  answer.plan = checked_plan(task.problem.graph, solution.schedule, options).plan;
}

/// Whether any recomputation at all would cost more than the task allows.
bool no_recomputation_is_affordable(const Task& task) {
  if (!task.max_cost) return false;
  const core::Graph& graph = task.problem.graph;
  const std::int64_t most = *task.max_cost - task.problem.baseline.cost;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (!graph.pinned(v) && graph.cost(v) <= most) return false;
  }
  return true;
}

Answer search_peak(const Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search) {
  Answer answer;
  solvers::SolveOptions options = search;
  options.budget = task.problem.budget;
  options.max_cost = task.max_cost;
  solvers::Scope once = search.scope;
  once.max_occurrences = 1;
  const bool narrowed = no_recomputation_is_affordable(task) && solver.honours(once);
  if (narrowed) options.scope = once;
  // The baseline costs no more than any other schedule.
  const core::Schedule baseline = core::baseline_schedule(task.problem.graph);
  const bool usable = options.start != nullptr && options.scope.contains(task.problem.graph, *options.start);
  if (task.max_cost && !usable) options.start = &baseline;
  options.limit.seconds *= share_for_search(task.problem.graph, options.limit.seconds);
  answer.found = solve(task.problem.graph, solver, options);
  solvers::Solution& solution = answer.found.solution;
  if (narrowed) {
    // What recomputes costs too much, so that these bounds hold for all that is asked for.
    for (solvers::Scope* scope : {&solution.scope, &solution.peak_bound.scope, &solution.cost_bound.scope}) {
      if (scope->max_occurrences == 1) scope->max_occurrences = search.scope.max_occurrences;
    }
  }
  answer.success = answer.found.within(task.problem.budget) && (!task.max_cost || solution.cost <= *task.max_cost);
  if (answer.has_schedule()) plan_found(task, search, answer);
  return answer;
}

Answer search_plan(const Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search) {
  const FitOptions options = patient(task.problem.graph, search, {.alignment = task.alignment});
  Fit fit = fit_to_budget(task.problem, task.rounded, solver, options);
  Answer answer;
  answer.success = fit.fits();
  answer.found.solution = std::move(fit.solution);
  answer.found.seconds = fit.seconds;
  answer.plan = std::move(fit.plan);
  answer.rounds = fit.rounds;
  if (answer.has_schedule()) {
    answer.found.evaluation = evaluate_again(solver.name, task.rounded.graph, answer.found.solution);
    if (!answer.plan) plan_found(task, search, answer);
  }
  return answer;
}

Answer search_knee(const Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
                   const std::function<void(const CurveProgress&)>& progress) {
  CurveOptions options;
  options.fit.search = search;
  options.fit.plan.alignment = task.alignment;
  options.points = 8;
  options.progress = progress;
  Answer answer;
  answer.curve = pareto_curve(task.problem, solver, options);
  const Curve& curve = *answer.curve;
  const CurvePoint& knee = curve.points[curve.knee.value()];
  solvers::Solution& solution = answer.found.solution;
  solution.status = knee.status;
  solution.scope = search.scope;
  solution.schedule = knee.schedule;
  solution.peak_bound = curve.peak_bound;
  solution.cost_bound = knee.cost_bound;
  solution.peak = solution.least_peak = knee.evaluation.peak;
  solution.cost = knee.evaluation.cost;
  for (const CurvePoint& point : curve.points) {
    if (point.known()) solution.least_peak = std::min(solution.least_peak, point.evaluation.peak);
  }
  solution.least_peak_by = solver.name;
  solution.tradeoffs = curve.met;
  solution.best_seconds = answer.found.seconds = curve.seconds;
  solution.timed_out = curve.stop == solvers::Stop::limit;
  solution.stop = curve.stop;
  answer.success = true;
  answer.plan = knee.plan;
  return answer;
}

}  // namespace

std::string_view to_string(Objective objective) {
  static constexpr std::array<std::string_view, 5> kNames{"least cost within a planned budget",
                                                          "least cost within a budget of peak",
                                                          "least peak within a cost", "least peak", "knee"};
  return kNames[static_cast<std::size_t>(objective)];
}

Answer search(const Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
              const std::function<void(const CurveProgress&)>& curve_progress) {
  Answer answer = task.objective == Objective::knee            ? search_knee(task, solver, search, curve_progress)
                  : task.objective == Objective::within_budget ? search_plan(task, solver, search)
                                                               : search_peak(task, solver, search);
  // What is proved is proved, however the search went on for the least budget.
  if (answer.found.solution.status == solvers::Status::infeasible) answer.found.solution.stop = solvers::Stop::proved;
  if (interrupted(search) && !answer.has_schedule()) {
    answer.found.solution.status = solvers::Status::not_found;
    answer.found.solution.stop = solvers::Stop::interrupted;
    answer.found.solution.schedule = core::baseline_schedule(task.problem.graph);
    plan_found(task, search, answer);
  }
  return answer;
}

Gap gap_of(const Task& task, const Answer& answer) {
  const solvers::Solution& solution = answer.found.solution;
  const core::Evaluation found = core::evaluate(task.problem.graph, solution.schedule);
  if (task.objective != Objective::within_cost && task.objective != Objective::least_peak)
    return {false, found.cost, solution.cost_bound};
  const bool trivial = task.problem.lower_bound > solution.peak_bound.value;
  return {true, found.peak, trivial ? solvers::Bound{task.problem.lower_bound} : solution.peak_bound};
}

std::optional<solvers::Bound> least_cost_bound(const Problem& problem, const solvers::SolveOptions& options,
                                               std::optional<std::int64_t> known_cost) {
  const std::atomic<std::int64_t> known = known_cost.value_or(solvers::CostBoundOptions::kNoneKnown);
  solvers::CostBoundOptions asked;
  asked.budget = problem.budget.value();
  asked.order = options.scope.order;
  asked.limit = options.limit;
  asked.known_cost = &known;
  asked.memory_bytes = options.memory_bytes;
  const solvers::CostBound bound = solvers::cost_bound(problem.graph, asked);
  if (bound.infeasible) return std::nullopt;
  return solvers::Bound{bound.value, {asked.order, 0}};
}

}  // namespace cairn::pipeline
