#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/registry.h"

/// Tells what a graph needs: whether it fits a budget, by which means, and the least budget.
namespace cairn::pipeline {

/// What a schedule within the budget does that the baseline does not.
enum class Means : std::uint8_t { baseline, order, recomputation };
std::string_view to_string(Means means);

/// Whether a budget can be met, and by what means.
struct BudgetVerdict {
  std::optional<bool> fits = {};                 ///< whether a schedule in `scope` fits; none: not known
  bool below_bound = false;                      ///< the lower bound alone excludes the budget: nothing was searched
  solvers::Scope scope = solvers::kAnySchedule;  ///< if `fits` is false, the scope in which no schedule fits
  std::string_view fits_with = {};               ///< another solver whose schedule fits; empty: none is known
  std::optional<Means> means = {};
  std::optional<fit::LeastBudget> by = {};  ///< the cheapest schedule known within the budget
  solvers::Bound cost_bound = {};  ///< lower bound on the cost of the schedules searched; meaningless where none fits
};

struct Info {
  fit::LeastBudget least;
  std::optional<BudgetVerdict> verdict;  ///< verdict on the task's budget; none: it has no budget
};

/// Searches for the least budget. Where the task has a budget, also searches for the cheapest schedule within it and
/// for a lower bound on the cost of every schedule within it. All of this stays within the limit of `search`, whose
/// budget and max_cost are ignored. `least_work`: work limit of the search for the least budget (least_budget_work).
/// Raises the task's lower bounds to what was proved. Throws what find_least_budget throws.
Info find_info(fit::Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
               std::int64_t least_work);

}  // namespace cairn::pipeline
