#include "cairn/pipeline/info.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/limit.h"

namespace cairn::pipeline {
namespace {

/// With a budget, the search for the least budget ends after this fraction of the time limit if it has found a schedule
/// within the budget.
constexpr double kShareOfLeast = 0.4;
/// If there is a budget, the search for a lower bound on the cost gets this fraction of the limits on time and work.
constexpr double kShareOfBound = 0.25;

BudgetVerdict verdict_of(fit::LeastBudget by, solvers::Bound bound) {
  const Means means = !by.schedule.transfers.empty()  ? Means::transfers
                      : by.is_baseline()              ? Means::baseline
                      : by.evaluation.recomputed == 0 ? Means::order
                                                      : Means::recomputation;
  return {.fits = true, .means = means, .by = std::move(by), .cost_bound = bound};
}

/// Searches for a schedule within the task's budget, as `solve` and `run` do. Updates `least`, the least budget known,
/// if the schedule needs less.
BudgetVerdict judge_budget(const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
                           const fit::Task& task, const core::Stopwatch& watch, fit::LeastBudget& least) {
  const fit::Problem& problem = task.problem;
  const std::int64_t budget = problem.budget.value();
  const solvers::Bound every_node_once{problem.baseline.cost, solvers::kAnySchedule};
  if (budget < task.rounded.plan_bound()) return {.fits = false, .below_bound = true};
  if (auto baseline =
          fit::baseline_within(problem, task.rounded, budget, {.alignment = task.alignment, .limit = watch.share(0.2)}))
    return verdict_of(*std::move(baseline), every_node_once);
  solvers::SolveOptions options = search;
  options.limit = watch.share(1 - kShareOfBound);
  const fit::Answer answer = fit::search(task, solver, options, {}, {.just_found = &least});
  const solvers::Solution& solution = answer.found.solution;
  solvers::Bound bound = every_node_once;
  if (solution.cost_bound.value > bound.value && solution.cost_bound.scope.contains(search.scope))
    bound = solution.cost_bound;
  if (answer.success) {
    fit::LeastBudget by;  // the cheapest schedule found, which need not have the least memory
    by.take(fit::PlannedSchedule(problem.graph, solution.schedule, answer.found.plan), solver.name);
    by.bound = {task.rounded.plan_bound(), solvers::kAnySchedule};
    if (by.memory() < least.memory()) least = by;
    return verdict_of(std::move(by), bound);
  }
  const bool proved = solution.status == solvers::Status::infeasible;
  const solvers::Scope& scope = solution.peak_bound.scope;
  if (proved && scope == solvers::kAnySchedule) return {.fits = false};
  options.limit = watch.rest();
  const fit::LeastBudget other =
      fit::least_known(problem, task.rounded, solver, least, {.search = options, .plan = task.planning()});
  BudgetVerdict verdict{.cost_bound = bound};
  if (proved) {
    verdict.fits = false;
    verdict.scope = scope;
  }
  if (other.memory() <= budget) verdict.fits_with = other.solver;
  return verdict;
}

/// If the cheapest schedule known costs more than the lower bound on the cost, searches for a higher bound in the
/// remaining time.
void raise_cost_bound(const solvers::SolveOptions& search, const fit::Task& task, const core::Stopwatch& watch,
                      BudgetVerdict& verdict) {
  const std::optional<std::int64_t> cost =
      verdict.by ? std::optional(verdict.by->evaluation.cost) : std::optional<std::int64_t>();
  if (verdict.fits == false || cost == verdict.cost_bound.value || watch.interrupted()) return;
  solvers::SolveOptions options = search;
  options.limit = watch.rest();
  if (options.limit.counts_work()) options.limit = core::Stopwatch(search.limit).share(kShareOfBound);
  const std::optional<solvers::Bound> bound = fit::least_cost_bound(task.rounded, options, cost);
  if (!bound && options.scope.order == solvers::OrderRule::free) {
    if (verdict.by) throw core::DefectError("a bound on the cost excludes a schedule that fits; please report this");
    verdict = {.fits = false};
  } else if (!bound && verdict.fits != true) {
    verdict.fits = false;
    verdict.scope = {options.scope.order, 0};
  }
  if (bound && bound->value > verdict.cost_bound.value) verdict.cost_bound = *bound;
}

}  // namespace

std::string_view to_string(Means means) {
  static constexpr std::array<std::string_view, 4> kNames{"baseline", "order", "recomputation", "transfers"};
  return kNames[static_cast<std::size_t>(means)];
}

Info find_info(fit::Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
               std::int64_t least_work, const fit::LeastBudget* known) {
  const fit::Problem& problem = task.problem;
  const core::Stopwatch watch(search.limit);
  fit::LeastBudgetOptions asked{.search = search, .plan = task.planning()};
  // A search with `enough` set takes the same steps as a search without it, and only ends earlier. So if `cairn info`
  // has printed a least budget, `cairn info --budget` with this budget finds a schedule within it again.
  if (problem.budget) {
    asked.enough = *problem.budget;
    asked.enough_from = kShareOfLeast * asked.search.limit.seconds;
  }
  asked.search.limit.seconds *= fit::kLeastBudgetShare;
  asked.search.limit.work = least_work;
  const fit::KnownStart start(asked.search, known);
  Info info{fit::find_least_budget(problem, task.rounded, solver, asked), {}};
  if (info.least.bound.scope == solvers::kAnySchedule) {
    const std::int64_t peak = info.least.bound.value + task.rounded.plan_slack;
    task.rounded.lower_bound = std::max(task.rounded.lower_bound, peak);
    if (task.rounded.same_sizes(problem)) task.problem.lower_bound = std::max(problem.lower_bound, peak);
  }
  if (problem.budget) {
    info.verdict = judge_budget(solver, search, task, watch, info.least);
    raise_cost_bound(search, task, watch, *info.verdict);
  }
  return info;
}

}  // namespace cairn::pipeline
