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

/// The schedule with the lowest plan known. Its memory() is a budget that is known to be met.
struct LeastBudget : PlannedSchedule {
  /// Name of the solver (SolverInfo::name) that found the schedule; `none` for the baseline.
  std::string_view solver = "none";
  core::Schedule lowest;  ///< schedule with the lowest peak met, whatever its plan needs
  solvers::Bound bound;   ///< lower bound in bytes: no schedule in the bound's scope needs less
  solvers::Stop stop = solvers::Stop::ended;
  std::vector<solvers::Tradeoff> tradeoffs;  ///< peaks and costs of schedules that the solver met
  double seconds = 0;                        ///< time that the search took
  std::int64_t work = 0;                     ///< work of the search, in the unit of core::Limit::work

  bool proved() const { return memory() <= bound.value; }
};

struct LeastBudgetOptions {
  solvers::SolveOptions search;  ///< options of the solver; budget and max_cost are not read
  solvers::PlanOptions plan;     ///< options of plans; guards do not count towards the budget
  bool peak_only = false;        ///< whether budgets limit peaks; nothing is planned then
  std::int64_t enough = 0;       ///< a schedule that needs at most this many bytes ends the search
};

/// Finds the least budget that some schedule meets. The search runs in rounds, each three times as long as the one
/// before. A round consists of these parts:
/// - a call of the solver without a budget;
/// - calls under budgets below the lowest peak met, because a solver reaches lower peaks under a budget than without
///   one. The distance below the lowest peak grows while these budgets are met and shrinks otherwise;
/// - if plans need more than peaks, a search for schedule and addresses together (solvers::search_placed()) under
///   budgets between the two.
///
/// The lowest schedules met are planned. `rounded`: problem.rounded_up(options.plan.alignment).
///
/// Limits only decide after which call the search ends; they do not change what is tried. So the same limit of work
/// gives the same answer, and a larger limit gives no worse one. `enough` ends the same search earlier, so a budget
/// that was promised before is found again in no more time. Throws DefectError if the solver's answer is wrong,
/// InputError if the solver does not accept the graph.
LeastBudget find_least_budget(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                              const LeastBudgetOptions& options);

/// Returns the baseline if its plan fits into `budget` bytes, else nothing. `rounded`:
/// problem.rounded_up(options.alignment).
std::optional<LeastBudget> baseline_within(const Problem& problem, const Problem& rounded, std::int64_t budget,
                                           solvers::PlanOptions options);

/// Finds the least budget after a search found nothing within the problem's budget. Starts with `known` or, if that is
/// empty, with the answer of find_least_budget(). If the answer is above the budget and not proved to be the least,
/// find_least_budget() is called with all solvers. All calls together keep to the limit.
LeastBudget least_known(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                        std::optional<LeastBudget> known, const LeastBudgetOptions& options);

/// Fraction of a command's time that find_least_budget() gets when the least budget is asked for. The fraction is below
/// 1 so that a later `solve` command under the budget found has a little more time for the same search
/// (FitOptions::secure_share).
constexpr double kLeastBudgetShare = 0.85;

/// Returns the work limit for a call of find_least_budget() whose answer has to be repeatable. This is the limit's work
/// or, without one, the work that a slow machine does in the limit's seconds. Returns kAnyWork if the limit has
/// neither. On even slower machines the seconds still end the search.
std::int64_t least_budget_work(const core::Limit& limit);

}  // namespace cairn::fit
