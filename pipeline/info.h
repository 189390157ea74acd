#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/registry.h"

/// What a graph needs: will it fit, by which means, and what is the least budget?
namespace cairn::pipeline {

/// What a schedule within the budget does that the baseline does not.
enum class Means : std::uint8_t { baseline, order, recomputation };
std::string_view to_string(Means means);

/// Whether a budget can be met, and by what means.
struct BudgetVerdict {
  std::optional<bool> fits = {};                 ///< of the schedules in `scope`; none: not known
  bool below_bound = false;                      ///< the lower bound alone excludes it: nothing was searched
  solvers::Scope scope = solvers::kAnySchedule;  ///< of which it is proved that none fits, where it is
  std::string_view fits_with = {};               ///< another solver, by whose schedules it fits; empty: none is known
  std::optional<Means> means = {};
  std::optional<fit::LeastBudget> by = {};  ///< the cheapest known within the budget
  solvers::Bound cost_bound = {};           ///< of those that are asked for; means nothing where none fits
};

struct Info {
  fit::LeastBudget least;
  std::optional<BudgetVerdict> verdict;  ///< of the task's budget, where it has one
};

/// Searches for the least budget and, where the task has a budget, for the cheapest schedule within it and a bound on
/// the cost of all, together within the limit of `search`, whose budget and max_cost are not read. `least_work`: of the
/// search for the least budget (least_budget_work). Raises the lower bounds of the task by what was proved. Throws as
/// find_least_budget.
Info find_info(fit::Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
               std::int64_t least_work);

}  // namespace cairn::pipeline
