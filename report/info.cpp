#include "cairn/pipeline/info.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "cairn/core/text.h"
#include "cairn/report/words.h"

namespace cairn::report {

std::string fit_text(const fit::Task& task, const pipeline::BudgetVerdict& verdict) {
  const auto otherwise = [&](std::string_view none) {
    return verdict.fits_with.empty() ? std::string(none) : "; fits with " + core::option("solver", verdict.fits_with);
  };
  if (verdict.below_bound) return "does not fit: below the lower bound";
  if (!verdict.fits) return "not known: none that fits was found in time, and none is excluded" + otherwise("");
  if (!*verdict.fits)
    return fmt::format("does not fit{}: proved{}", scope_text(verdict.scope),
                       otherwise(verdict.scope == solvers::kAnySchedule ? "" : "; not known otherwise"));
  switch (verdict.means.value()) {
    case pipeline::Means::baseline:
      return "fits as it is, in the baseline order";
    case pipeline::Means::order:
      return "fits by another order, without recomputation";
    case pipeline::Means::recomputation:
      break;
  }
  const fit::LeastBudget& by = verdict.by.value();
  return fmt::format("fits by recomputing {} of {} steps, cost {:+.2f}%", by.evaluation.recomputed,
                     by.schedule.length(), increase_pct(by.evaluation.cost, task.problem.baseline.cost));
}

std::string cost_text(const fit::Task& task, const pipeline::BudgetVerdict& verdict) {
  const fit::Problem& problem = task.problem;
  const auto text = [&](std::int64_t cost) {
    return fmt::format("{} ({:+.2f}%)", cost_with_unit(problem, cost), increase_pct(cost, problem.baseline.cost));
  };
  const std::int64_t bound = verdict.cost_bound.value;
  const std::string scope = scope_text(verdict.cost_bound.scope);
  if (!verdict.by) return fmt::format("at least {} within the budget{}", text(bound), scope);
  const std::int64_t cost = verdict.by->evaluation.cost;
  if (cost == bound) return fmt::format("{}: no schedule within the budget{} costs less", text(cost), scope);
  return fmt::format("{}, {}: no schedule within the budget{} costs less than {}", text(cost),
                     above_optimum_text(fit::gap_pct(cost, verdict.cost_bound)), scope, text(bound));
}

std::string least_text(const fit::Task& task, const fit::LeastBudget& least) {
  std::string text = fmt::format("{}, {:.1f}% of the baseline, with {}", size_to_type(least.memory()),
                                 share_pct(task.problem, least.memory()), core::option("solver", least.solver));
  if (least.evaluation.recomputed > 0)
    text += fmt::format(", cost {:+.2f}% or less", increase_pct(least.evaluation.cost, task.problem.baseline.cost));
  return text + (least.proved() ? fmt::format("; proved least{}", scope_text(least.bound.scope)) : "");
}

std::string refusal_text(const fit::Task& task, const pipeline::Info& info) {
  const fit::Problem& problem = task.problem;
  const std::int64_t budget = problem.budget.value(), bound = task.rounded.plan_bound();
  const std::string verdict = fit_text(task, info.verdict.value());
  const std::size_t end = std::min(verdict.find("; "), verdict.size());
  return in_lines(
      {verdict_text("", problem.name,
                    fmt::format(" within {}: {}", budget_text(problem, budget, {bound, info.least.memory()}, false),
                                verdict.substr(0, end))),
       end < verdict.size() ? verdict.substr(end + 2) : "",
       fmt::format("the lower bound is {}", baseline_share_text(problem, bound, false, read_alike(budget, bound))),
       least_budget_text(problem, info.least, bound)});
}

}  // namespace cairn::report
