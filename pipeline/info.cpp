#include "cairn/pipeline/info.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cairn/core/limit.h"
#include "cairn/pipeline/words.h"

namespace cairn::pipeline {
namespace {

constexpr double kShareOfLeast = 0.4;   ///< of the limit under a budget, at most, for the least budget
constexpr double kShareOfBound = 0.25;  ///< of the limit under a budget, for the bound on the cost

BudgetVerdict verdict_of(const Problem& problem, LeastBudget by, solvers::Bound bound) {
  const core::Evaluation& found = by.evaluation;
  BudgetVerdict verdict{.fits = true, .means = Means::recomputation, .cost_bound = bound};
  if (by.solver == "none") {
    verdict.means = Means::baseline;
    verdict.text = "fits as it is, in the baseline order";
  } else if (found.recomputed == 0) {
    verdict.means = Means::order;
    verdict.text = "fits by another order, without recomputation";
  } else {
    verdict.text = fmt::format("fits by recomputing {} of {} steps, cost {:+.2f}%", found.recomputed,
                               by.schedule.length(), increase_pct(found.cost, problem.baseline.cost));
  }
  verdict.by = std::move(by);
  return verdict;
}

/// By the same search as `solve` and `run`. May find a lower budget feasible than `least`.
BudgetVerdict judge_budget(const solvers::SolverInfo& solver, const solvers::SolveOptions& search, const Task& task,
                           const core::Stopwatch& watch, LeastBudget& least) {
  const Problem& problem = task.problem;
  const std::int64_t budget = problem.budget.value();
  const solvers::Bound every_node_once{problem.baseline.cost, solvers::kAnySchedule};
  if (budget < task.rounded.plan_bound()) return {.fits = false, .text = "does not fit: below the lower bound"};
  if (auto baseline =
          baseline_within(problem, task.rounded, budget, {.alignment = task.alignment, .limit = watch.share(0.2)}))
    return verdict_of(problem, *std::move(baseline), every_node_once);
  solvers::SolveOptions options = search;
  options.limit = watch.share(1 - kShareOfBound);
  const Answer answer = pipeline::search(task, solver, options, {}, &least);
  const solvers::Solution& solution = answer.found.solution;
  solvers::Bound bound = every_node_once;
  if (solution.cost_bound.value > bound.value && solution.cost_bound.scope.contains(search.scope))
    bound = solution.cost_bound;
  if (answer.success) {
    LeastBudget by = least_budget_after(task, answer, solver, options);
    if (by.bytes < least.bytes) least = by;
    return verdict_of(problem, std::move(by), bound);
  }
  const bool proved = solution.status == solvers::Status::infeasible;
  const solvers::Scope& scope = solution.peak_bound.scope;
  if (proved && scope == solvers::kAnySchedule) return {.fits = false, .text = "does not fit: proved"};
  options.limit = watch.rest();
  const LeastBudget other =
      least_known(problem, task.rounded, solver, least, {.search = options, .plan = {.alignment = task.alignment}});
  BudgetVerdict verdict{.cost_bound = bound};
  if (proved) {
    verdict.fits = false;
    verdict.scope = scope;
  }
  verdict.text = proved ? fmt::format("does not fit{}: proved", scope_text(scope))
                        : "not known: none that fits was found in time, and none is excluded";
  if (other.bytes <= budget) {
    verdict.fits_with = other.solver;
    verdict.text += fmt::format("; fits with --solver {}", other.solver);
  } else if (proved) {
    verdict.text += "; not known otherwise";
  }
  return verdict;
}

/// Raises the bound on the cost, where there is a gap, in the time that the search left for it.
void raise_cost_bound(const solvers::SolveOptions& search, const Task& task, const core::Stopwatch& watch,
                      BudgetVerdict& verdict) {
  const std::optional<std::int64_t> cost =
      verdict.by ? std::optional(verdict.by->evaluation.cost) : std::optional<std::int64_t>();
  if (verdict.fits == false || cost == verdict.cost_bound.value || watch.interrupted()) return;
  solvers::SolveOptions options = search;
  options.limit = watch.rest();
  if (options.limit.counts_work()) options.limit = core::Stopwatch(search.limit).share(kShareOfBound);
  const std::optional<solvers::Bound> bound = least_cost_bound(task.rounded, options, cost);
  if (!bound && options.scope.order == solvers::OrderRule::free) {
    if (verdict.by) throw DefectError("a bound on the cost excludes a schedule that fits; please report this");
    verdict = {.fits = false, .text = "does not fit: proved"};
  } else if (!bound && verdict.fits != true) {
    verdict.fits = false;
    verdict.scope = {options.scope.order, 0};
    verdict.text = fmt::format("does not fit{}: proved; not known otherwise", scope_text(verdict.scope));
  }
  if (bound && bound->value > verdict.cost_bound.value) verdict.cost_bound = *bound;
}

}  // namespace

std::string cost_text(const Task& task, const BudgetVerdict& verdict) {
  const Problem& problem = task.problem;
  const auto text = [&](std::int64_t cost) {
    return fmt::format("{} ({:+.2f}%)", cost_with_unit(problem, cost), increase_pct(cost, problem.baseline.cost));
  };
  const std::int64_t bound = verdict.cost_bound.value;
  const std::string scope = scope_text(verdict.cost_bound.scope);
  if (!verdict.by) return fmt::format("at least {} within the budget{}", text(bound), scope);
  const std::int64_t cost = verdict.by->evaluation.cost;
  if (cost == bound) return fmt::format("{}: no schedule within the budget{} costs less", text(cost), scope);
  return fmt::format("{}, {}: no schedule within the budget{} costs less than {}", text(cost),
                     above_optimum_text(gap_pct(cost, verdict.cost_bound)), scope, text(bound));
}

std::string least_text(const Task& task, const LeastBudget& least) {
  std::string text = fmt::format("{}, {:.1f}% of the baseline, with --solver {}", size_to_type(least.bytes),
                                 share_pct(task.problem, least.bytes), least.solver);
  if (least.evaluation.recomputed > 0)
    text += fmt::format(", cost {:+.2f}% or less", increase_pct(least.evaluation.cost, task.problem.baseline.cost));
  return text + (least.proved() ? fmt::format("; proved least{}", scope_text(least.bound.scope)) : "");
}

std::string refusal_text(const Task& task, const Info& info) {
  const Problem& problem = task.problem;
  const std::int64_t budget = problem.budget.value(), bound = task.rounded.plan_bound();
  const std::string& verdict = info.verdict.value().text;
  const std::size_t end = std::min(verdict.find("; "), verdict.size());
  return in_lines(
      {verdict_text("", problem.name,
                    fmt::format(" within {}: {}", budget_text(problem, budget, {bound, info.least.bytes}, false),
                                verdict.substr(0, end))),
       end < verdict.size() ? verdict.substr(end + 2) : "",
       fmt::format("the lower bound is {}", baseline_share_text(problem, bound, false, read_alike(budget, bound))),
       least_budget_text(problem, info.least, bound)});
}

std::string_view to_string(Means means) {
  return means == Means::baseline ? "baseline" : means == Means::order ? "order" : "recomputation";
}

Info find_info(Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
               std::int64_t least_work) {
  const Problem& problem = task.problem;
  const core::Stopwatch watch(search.limit);
  LeastBudgetOptions asked{.search = search, .plan = {.alignment = task.alignment}};
  // What fits is found by the same way again, if this is not the end of it.
  asked.search.limit.seconds *= problem.budget ? kShareOfLeast : kLeastBudgetShare;
  asked.search.limit.work = least_work;
  Info info{find_least_budget(problem, task.rounded, solver, asked), {}};
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
