#include "cairn/pipeline/info.h"

#include <fmt/format.h>

#include <string>

#include "cairn/core/support/text.h"
#include "cairn/report/support/words.h"

namespace cairn::report {

namespace {

/// Says whether the budget can be met, and how.
std::string answer_text(const fit::Task& task, const pipeline::BudgetVerdict& verdict) {
  if (verdict.below_bound) return "does not fit: below the lower bound";
  if (!verdict.fits) return "not known: none that fits was found in time; not proved impossible";
  if (!*verdict.fits) return fmt::format("does not fit{}: proved", scope_text(verdict.scope));
  switch (verdict.means.value()) {
    case pipeline::Means::baseline:
      return "fits as it is, in the baseline order";
    case pipeline::Means::order:
      return "fits by another order, without recomputation";
    case pipeline::Means::recomputation:
    case pipeline::Means::transfers:
      break;
  }
  const fit::LeastBudget& by = verdict.by.value();
  if (verdict.means == pipeline::Means::transfers)
    return fmt::format("fits by moving {} tensors to the host and recomputing {} of {} steps, cost {:+.2f}%",
                       by.schedule.transfers.evicts.size(), by.evaluation.recomputed, by.schedule.length(),
                       increase_pct(by.evaluation.cost, task.problem.baseline.cost));
  return fmt::format("fits by recomputing {} of {} steps, cost {:+.2f}%", by.evaluation.recomputed,
                     by.schedule.length(), increase_pct(by.evaluation.cost, task.problem.baseline.cost));
}

/// If the verdict holds only for some schedules, says what is known about all other schedules: either which solver
/// finds one that fits, or that nothing is known. Returns an empty text if the verdict holds for all schedules.
std::string otherwise_text(const pipeline::BudgetVerdict& verdict) {
  if (!verdict.fits_with.empty()) return "fits with " + core::option("solver", verdict.fits_with);
  const bool part = verdict.fits && !*verdict.fits && !verdict.below_bound && verdict.scope != solvers::kAnySchedule;
  return part ? "unknown for other schedules" : "";
}

}  // namespace

std::string fit_text(const fit::Task& task, const pipeline::BudgetVerdict& verdict) {
  const std::string otherwise = otherwise_text(verdict);
  return answer_text(task, verdict) + (otherwise.empty() ? "" : "; " + otherwise);
}

std::string cost_text(const fit::Task& task, const pipeline::BudgetVerdict& verdict) {
  const fit::Problem& problem = task.problem;
  const auto text = [&](std::int64_t cost) { return cost_and_increase(problem, cost); };
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
  if (least.evaluation.recomputed > 0 || !least.schedule.transfers.empty())
    text += fmt::format(", cost {:+.2f}% or less", increase_pct(least.evaluation.cost, task.problem.baseline.cost));
  return text + (least.proved() ? fmt::format("; proved least{}", scope_text(least.bound.scope)) : "");
}

std::string refusal_text(const fit::Task& task, const pipeline::Info& info) {
  const fit::Problem& problem = task.problem;
  const std::int64_t budget = problem.budget.value(), bound = task.rounded.plan_bound();
  const pipeline::BudgetVerdict& verdict = info.verdict.value();
  return in_lines(
      {verdict_text("", problem.name,
                    fmt::format(" within {}: {}", budget_text(problem, budget, {bound, info.least.memory()}, false),
                                answer_text(task, verdict))),
       otherwise_text(verdict),
       fmt::format("the lower bound is {}", baseline_share_text(problem, bound, false, read_alike(budget, bound))),
       least_budget_text(problem, info.least, bound)});
}

}  // namespace cairn::report
