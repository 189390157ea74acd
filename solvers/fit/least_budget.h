#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cairn/core/schedule.h"
#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/fit/planned_schedule.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/solvers/registry.h"

namespace cairn::fit {

/// The lowest schedule known. Its memory() is a budget that is known to be met.
struct LeastBudget : PlannedSchedule {
  /// Name of the solver (SolverInfo::name) that found the schedule; `none` for the baseline.
  std::string_view solver = "none";
  core::Schedule lowest;  ///< schedule of the lowest peak met, whatever its plan needs
  solvers::Bound bound;   ///< lower bound in bytes: no schedule of the bound's scope needs less
  solvers::Stop stop = solvers::Stop::ended;
  std::vector<solvers::Tradeoff> tradeoffs;  ///< peaks and costs of schedules that the solver met
  double seconds = 0;                        ///< time that the search took
  std::int64_t work = 0;                     ///< work of the search, in the unit of core::Limit::work

  bool proved() const { return memory() <= bound.value; }
};

struct LeastBudgetOptions {
  solvers::SolveOptions search;  ///< options of the solver; budget and max_cost are not read
  solvers::PlanOptions plan;     ///< options of plans; guards are not counted in the budget
  bool peak_only = false;        ///< whether budgets are on peaks, so that nothing is planned
  std::int64_t enough = 0;       ///< bytes that suffice: a schedule that needs no more ends the search
};

/// Finds the least budget that some schedule meets, in rounds that are each three times as long as the one before. A
/// round consists of a call of the solver without a budget; calls under budgets below the lowest peak, because a search
/// under a budget gets lower than one without (the step below the peak grows while they are met and shrinks otherwise);
/// and, where plans need more than peaks, a search for schedule and plan together under budgets between the two
/// (solvers::search_placed). The lowest schedules met on the way are planned. `rounded`:
/// problem.rounded_up(options.plan.alignment).
///
/// Limits only say after which call the search ends; they do not change what is tried. The answer is the same when the
/// same limit of work is given again, and no worse with a larger one. `enough` ends the same search sooner, so that a
/// promised budget is found again in no more time. Throws DefectError if the solver is wrong, InputError if it does not
/// take the graph.
LeastBudget find_least_budget(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                              const LeastBudgetOptions& options);

/// Returns the baseline, if its plan fits into `budget` bytes. `rounded`: problem.rounded_up(options.alignment).
std::optional<LeastBudget> baseline_within(const Problem& problem, const Problem& rounded, std::int64_t budget,
                                           solvers::PlanOptions options);

/// Finds the least budget after a search found nothing within the problem's budget: `known`, else the answer of
/// find_least_budget. If that is above the budget and not proved least, find_least_budget with all solvers follows. All
/// calls together keep to the limit.
LeastBudget least_known(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                        std::optional<LeastBudget> known, const LeastBudgetOptions& options);

/// Fraction of a command's time that find_least_budget gets when the least budget is asked for. The command `solve`
/// under the budget found then has a little more time for the same search (FitOptions::secure_share).
constexpr double kLeastBudgetShare = 0.85;

/// Work limit for a call of find_least_budget whose answer has to be repeatable: the limit's work, or what a slow
/// machine does in the limit's seconds; without either, kAnyWork. The seconds still end the search on slower machines.
std::int64_t least_budget_work(const core::Limit& limit);

}  // namespace cairn::fit
