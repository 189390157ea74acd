#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/registry.h"

/// Finds out whether a graph fits into a budget, by which means, and what its least budget is.
namespace cairn::pipeline {

/// Says by which means a schedule meets a budget. The schedule is the baseline (the input order); or it runs every node
/// once in another order; or it recomputes nodes; or it moves values to the host and back, and perhaps also recomputes
/// nodes.
enum class Means : std::uint8_t { baseline, order, recomputation, transfers };
std::string_view to_string(Means means);

/// Whether a budget can be met, and how.
struct BudgetVerdict {
  /// Whether some schedule in `scope`, a set of allowed schedules, fits; none: unknown.
  std::optional<bool> fits = {};
  /// Whether the lower bound exceeds the budget. In that case, no search was made.
  bool below_bound = false;
  solvers::Scope scope = solvers::kAnySchedule;  ///< if `fits` is false, the scope in which no schedule fits
  /// Name of another solver whose schedule fits the budget; empty if no such solver is known.
  std::string_view fits_with = {};
  std::optional<Means> means = {};          ///< how `by` meets the budget
  std::optional<fit::LeastBudget> by = {};  ///< the cheapest schedule known within the budget
  /// Lower bound on the cost of every schedule in `scope` that fits the budget; meaningless if no schedule fits.
  solvers::Bound cost_bound = {};
};

struct Info {
  fit::LeastBudget least;
  std::optional<BudgetVerdict> verdict;  ///< none if the task has no budget
};

/// Searches for the least budget. If the task has a budget, also searches for the cheapest schedule within it, and for
/// a lower bound on the cost of every schedule within it. All searches together stay within `search.limit`. The budget
/// and the largest cost are taken from the task; the ones in `search` are ignored. `least_work` is the work limit of
/// the search for the least budget (least_budget_work()). If `known` is given, the search for the least budget starts
/// from the schedule of `known`, unless `search.start` is set. Raises the lower bounds in `task` to the bounds that the
/// searches prove. Throws the exceptions of find_least_budget().
Info find_info(fit::Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
               std::int64_t least_work, const fit::LeastBudget* known = nullptr);

}  // namespace cairn::pipeline
