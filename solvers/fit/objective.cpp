// Searches for a schedule that meets an objective, by the search that the objective needs (objective.h).

#include "cairn/solvers/fit/objective.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "cairn/core/support/saturating.h"
#include "cairn/solvers/fit/internal/fit_with_transfers.h"
#include "cairn/solvers/fit/internal/least_with_transfers.h"
#include "cairn/solvers/remat/bound/cost_bound.h"
#include "cairn/solvers/remat/bound/cut/certificate.h"

namespace cairn::fit {
namespace {

/// Plans the answer's schedule. A long schedule is not planned if Ctrl-C was pressed or the search failed, because
/// planning takes time.
void plan_found(const Task& task, const solvers::SolveOptions& search, Answer& answer) {
  const solvers::Solution& solution = answer.found.solution;
  if ((search.limit.interrupted() || !answer.success) && !is_planned_quickly(solution.schedule)) return;
  solvers::PlanOptions options = task.planning();
  options.limit.stop = search.limit.stop;
  options.limit.seconds = std::max(0.0, search.limit.seconds - answer.found.seconds);
  if (search.limit.interrupted()) options.limit.work = 0;
  answer.found.plan = checked_plan(task.problem.graph, solution.schedule, options).plan;
}

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
  // task.unaffordable() is false, so the baseline costs at most max_cost and can be the start.
  const core::Schedule baseline = core::baseline_schedule(task.problem.graph);
  const bool usable = options.start != nullptr && options.scope.contains(task.problem.graph, *options.start) &&
                      (!task.max_cost || core::evaluate(task.problem.graph, *options.start).cost <= *task.max_cost);
  if (task.max_cost && !usable) options.start = &baseline;
  options.limit.seconds *= share_for_search(task.problem.graph, options.limit.seconds);
  answer.found = solve_for_peak(task.problem, solver, options);
  solvers::Solution& solution = answer.found.solution;
  if (narrowed) {
    // If max_cost allows no recomputation, bounds for schedules without recomputation hold for all allowed schedules.
    // So their scope is widened.
    for (solvers::Scope* scope : {&solution.scope, &solution.peak_bound.scope, &solution.cost_bound.scope}) {
      if (scope->max_occurrences == 1) scope->max_occurrences = search.scope.max_occurrences;
    }
  }
  answer.success = answer.found.within(task.problem.budget) && (!task.max_cost || solution.cost <= *task.max_cost);
  if (answer.has_schedule()) plan_found(task, search, answer);
  return answer;
}

Answer search_plan(const Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
                   const Known& known) {
  if (*task.problem.budget < task.rounded.plan_bound()) {
    Answer answer;
    solvers::Solution& none = answer.found.solution;
    none.status = solvers::Status::infeasible;
    none.scope = solvers::intersection(search.scope, solver.scope);
    none.peak_bound = {task.rounded.plan_bound(), solvers::kAnySchedule};
    answer.rounds = 0;
    return answer;
  }
  FitOptions options = patient(task.problem.graph, search, task.planning());
  if (known.just_found != nullptr) options.secured = *known.just_found;
  options.fallback = known.stored;
  Fit fit = fit_to_budget(task.problem, task.rounded, solver, options);
  Answer answer;
  answer.success = fit.fits();
  answer.least = std::move(fit.least);
  answer.rounds = fit.rounds;
  answer.found = std::move(fit);
  if (answer.has_schedule()) {
    answer.found.evaluation = evaluate_again(solver.name, task.rounded.graph, answer.found.solution);
    if (!answer.found.plan) plan_found(task, search, answer);
  }
  return answer;
}

Answer search_least_budget(const Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
                           const LeastBudget* stored = nullptr) {
  const core::Stopwatch watch(search.limit);
  LeastBudgetOptions options{.search = search, .plan = task.planning()};
  options.search.limit.seconds *= kLeastBudgetShare;
  const KnownStart start(options.search, stored);
  LeastBudget least = find_least_budget(task.problem, task.rounded, solver, options);
  if (stored != nullptr && stored->is_below(least)) least.take(*stored, stored->solver);
  Answer answer;
  answer.success = true;
  answer.found.plan = least.plan;
  solvers::Solution& solution = answer.found.solution;
  const auto take = [&](const core::Schedule& schedule) {
    solution.schedule = schedule;
    answer.found.evaluation = core::evaluate(task.rounded.graph, schedule);
    solution.peak = answer.found.evaluation.peak;
    solution.cost = answer.found.evaluation.cost;
    solution.best_seconds = watch.seconds();
  };
  take(least.schedule);
  solution.scope = solvers::intersection(search.scope, solver.scope);
  solution.status = least.proved() ? solvers::Status::optimal : solvers::Status::feasible;
  solution.stop = least.stop;
  solution.work = least.work;
  solution.peak_bound = least.bound;
  solution.least_peak = solution.peak;
  solution.least_peak_by = least.solver;
  solution.cost_bound = {task.problem.baseline.cost, solvers::kAnySchedule};
  // Estimated time for planning the found schedule once more, in seconds.
  const double to_plan = 1e-5 * task.problem.graph.node_count();
  if (solution.cost > task.problem.baseline.cost && watch.rest().seconds > to_plan && !watch.interrupted() &&
      !least.is_baseline()) {
    Problem within = task.problem;
    within.budget = least.memory();
    solvers::SolveOptions cheaper = search;
    cheaper.limit = watch.rest();
    cheaper.start = nullptr;
    const KnownStart lowest(cheaper, &least);
    FitOptions fitting = patient(task.problem.graph, cheaper, task.planning());
    fitting.secure_share = 0;
    Fit fit = fit_to_budget(within, task.rounded, solver, fitting);
    solution.work += fit.solution.work;
    // A proof that the cost is least does not prove that the memory is least. So Stop::proved is taken over only if the
    // memory is proved to be least, too.
    if (least.proved() || fit.solution.stop != solvers::Stop::proved) solution.stop = fit.solution.stop;
    solution.timed_out = fit.solution.timed_out;
    solution.tradeoffs = std::move(fit.solution.tradeoffs);
    if (fit.fits() && fit.solution.cost < solution.cost) {
      take(fit.solution.schedule);
      answer.found.plan = std::move(fit.plan);
    }
  }
  answer.least = std::move(least);
  answer.found.seconds = watch.seconds();
  return answer;
}

/// Searches for the least peak, and afterwards for the least cost with that peak. Uses the same search as
/// search_least_budget(), so that the peak is not higher than the peak that search_least_budget() finds.
Answer search_least_peak(const Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search) {
  // Lowering the peak gets this fraction of the time. A work limit is not divided: each of the two searches gets all of
  // it.
  constexpr double kShare = 0.8;
  if (!solver.can.any_means) return search_peak(task, solver, search);
  const core::Stopwatch watch(search.limit);
  solvers::SolveOptions options = search;
  options.limit.seconds *= kShare;
  Task planned = task;
  planned.objective = Objective::least_budget;
  Answer answer = search_least_budget(planned, solver, options);
  solvers::Solution& solution = answer.found.solution;
  const auto take = [&](const core::Schedule& schedule) {
    const core::Evaluation found = core::evaluate(task.problem.graph, schedule);
    const bool better = std::pair(found.peak, found.cost) < std::pair(solution.peak, solution.cost);
    if (!better) return;
    solution.schedule = schedule;
    solution.peak = found.peak;
    solution.cost = found.cost;
    solution.best_seconds = watch.seconds();
    answer.found.evaluation = found;
    answer.found.plan.reset();
  };
  const core::Evaluation met = core::evaluate(task.problem.graph, solution.schedule);
  solution.peak = met.peak;
  solution.cost = met.cost;
  answer.found.evaluation = met;
  take(answer.least->lowest);
  if (solution.cost > task.problem.baseline.cost && !watch.interrupted()) {
    options.limit.seconds = watch.rest().seconds * share_for_search(task.problem.graph, watch.rest().seconds);
    options.budget = solution.peak;
    const core::Schedule lowest = solution.schedule;
    options.start = &lowest;
    const Solved cheaper = solve(task.problem.graph, solver, options);
    solution.work += cheaper.solution.work;
    take(cheaper.solution.schedule);
  }
  solution.peak_bound.value = std::max(solution.peak_bound.value, task.problem.lower_bound);
  solution.least_peak = solution.peak;
  const bool optimal = solution.peak <= solution.peak_bound.value;
  solution.status = optimal ? solvers::Status::optimal : solvers::Status::feasible;
  if (optimal) solution.stop = solvers::Stop::proved;
  answer.found.seconds = watch.seconds();
  if (!answer.found.plan) plan_found(task, search, answer);
  return answer;
}

Answer search_knee(const Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
                   const std::function<void(const CurveProgress&)>& progress) {
  const CurveOptions options{.fit = {.search = search, .plan = task.planning()}, .points = 8, .progress = progress};
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
  answer.found.plan = knee.plan;
  return answer;
}

}  // namespace

std::string_view to_string(Objective objective) {
  static constexpr std::array<std::string_view, 6> kNames{"least cost within a planned budget",
                                                          "least cost within a budget of peak",
                                                          "least peak within a cost",
                                                          "least peak",
                                                          "least planned memory",
                                                          "knee"};
  return kNames[static_cast<std::size_t>(objective)];
}

std::array<std::int64_t, 4> merit(const Task& task, const Answer& answer) {
  const solvers::Solution& solution = answer.found.solution;
  const std::int64_t bytes = answer.found.plan ? answer.found.plan->bytes : solution.peak;
  if (!answer.success) {
    const bool has_schedule = !solution.schedule.steps.empty();
    const std::int64_t known = has_schedule ? bytes : std::numeric_limits<std::int64_t>::max();
    return {solution.status == solvers::Status::infeasible ? 1 : 2, known, solution.peak, 0};
  }
  const bool by_cost = task.objective == Objective::within_budget || task.objective == Objective::within_peak;
  if (by_cost) return {0, solution.cost, std::max<std::int64_t>(0, solution.cost - solution.cost_bound.value), bytes};
  return {0, bytes, solution.cost, std::max<std::int64_t>(0, bytes - solution.peak_bound.value)};
}

Answer search(const Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
              const std::function<void(const CurveProgress&)>& curve_progress, const Known& known) {
  const auto by_objective = [&] {
    switch (task.objective) {
      case Objective::knee:
        return search_knee(task, solver, search, curve_progress);
      case Objective::within_budget:
        return search_plan(task, solver, search, known);
      case Objective::least_budget:
        return search_least_budget(task, solver, search, known.stored);
      case Objective::least_peak:
        return search_least_peak(task, solver, search);
      case Objective::within_peak:
      case Objective::within_cost:
        break;
    }
    return search_peak(task, solver, search);
  };
  Answer answer = by_objective();
  // The proof that no schedule fits is the reason for the stop, even if a later search ended for another reason.
  if (answer.found.solution.status == solvers::Status::infeasible) answer.found.solution.stop = solvers::Stop::proved;
  if (search.limit.interrupted() && !answer.has_schedule() &&
      answer.found.solution.status != solvers::Status::infeasible) {
    answer.found.solution.status = solvers::Status::not_found;
    answer.found.solution.stop = solvers::Stop::interrupted;
    answer.found.solution.schedule = core::baseline_schedule(task.problem.graph);
    plan_found(task, search, answer);
  }
  return answer;
}

LeastBudget least_budget_after(const Task& task, const Answer& answer, const solvers::SolverInfo& solver,
                               const solvers::SolveOptions& search) {
  const bool peak_only = task.objective == Objective::within_peak;
  LeastBudget least;
  const auto learn = [&](const core::Schedule& schedule, const std::optional<core::Plan>& plan) {
    PlannedSchedule one(task.problem.graph, schedule, peak_only ? std::nullopt : plan);
    if (!least.schedule.steps.empty() && one.memory() >= least.memory()) return;
    least.take(std::move(one), solver.name);
  };
  const core::Schedule& found = answer.found.solution.schedule;
  if (!answer.success) {
    const LeastBudgetOptions options{.search = search, .plan = task.planning(), .peak_only = peak_only};
    least = least_known(task.problem, task.rounded, solver, answer.least, options);
    if (peak_only ? !found.steps.empty() : answer.found.plan.has_value()) learn(found, answer.found.plan);
    return least;
  }
  least.bound = {peak_only ? task.problem.lower_bound : task.rounded.plan_bound(), solvers::kAnySchedule};
  learn(found, answer.found.plan);
  if (answer.least && !peak_only) learn(answer.least->schedule, answer.least->plan);
  if (answer.curve) {
    for (const CurvePoint& point : answer.curve->points) {
      if (point.known() && point.memory() < least.memory()) learn(point.schedule, point.plan);
    }
  }
  return least;
}

std::optional<std::int64_t> sufficient_host_budget(const Task& task, const Answer& answer,
                                                   const solvers::SolveOptions& search) {
  if (answer.success || task.objective != Objective::within_budget) return std::nullopt;
  std::vector<core::Schedule> starts{core::baseline_schedule(task.problem.graph)};
  if (answer.has_schedule()) starts.push_back({answer.found.solution.schedule.steps});
  if (answer.least) starts.push_back({answer.least->schedule.steps});
  return sufficient_host_budget(task.problem, task.rounded, starts, {.search = search, .plan = task.planning()});
}

Gap gap_of(const Task& task, const Answer& answer) {
  const solvers::Solution& solution = answer.found.solution;
  const core::Evaluation found = core::evaluate(task.problem.graph, solution.schedule);
  if (task.objective == Objective::least_budget) return {Gap::Of::plan, answer.found.plan->bytes, solution.peak_bound};
  if (task.objective != Objective::within_cost && task.objective != Objective::least_peak)
    return {Gap::Of::cost, found.cost, solution.cost_bound};
  const bool trivial = task.problem.lower_bound > solution.peak_bound.value;
  return {Gap::Of::peak, found.peak, trivial ? solvers::Bound{task.problem.lower_bound} : solution.peak_bound};
}

std::optional<solvers::Bound> least_cost_bound(const Problem& problem, const solvers::SolveOptions& options,
                                               std::optional<std::int64_t> known_cost) {
  const std::int64_t budget = problem.peak_within(problem.budget.value());
  const std::atomic<std::int64_t> known = known_cost.value_or(solvers::CostBoundOptions::kNoneKnown);
  const solvers::CostBound bound = problem.graph.host_memory()
                                       ? bound_with_transfers(problem.graph, budget, options, options.limit)
                                       : solvers::cost_bound(problem.graph, {.budget = budget,
                                                                             .order = options.scope.order,
                                                                             .limit = options.limit,
                                                                             .known_cost = &known,
                                                                             .memory_bytes = options.memory_bytes});
  if (bound.infeasible) return std::nullopt;
  return solvers::Bound{bound.value, {options.scope.order, 0}};
}

solvers::Certificate certify(const Task& task, const Answer& answer, core::Stopwatch& watch) {
  const Problem& problem = task.searched();
  const solvers::Solution& solution = answer.found.solution;
  const solvers::OrderRule order = solution.scope.order;
  if (task.objective == Objective::within_cost) {
    const std::int64_t budget = gap_of(task, answer).bound.value - 1;
    return solvers::certify(problem.graph, budget, order, core::saturating_add(task.max_cost.value(), 1), watch);
  }
  const std::int64_t budget = problem.peak_within(problem.budget.value());
  const std::int64_t enough = answer.success ? solution.cost : solvers::CostBoundOptions::kNoneKnown;
  return solvers::certify(problem.graph, budget, order, enough, watch);
}

bool proves_bound(const Task& task, const Answer& answer, const solvers::Certificate& certificate) {
  if (!certificate.least_cost) return true;
  if (task.objective == Objective::within_cost) return *certificate.least_cost > task.max_cost.value();
  const solvers::Solution& solution = answer.found.solution;
  return solution.status != solvers::Status::infeasible && *certificate.least_cost >= solution.cost_bound.value;
}

}  // namespace cairn::fit
