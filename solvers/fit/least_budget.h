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

/// The schedule with the lowest plan known. Its memory() is therefore a budget within which a schedule exists.
struct LeastBudget : PlannedSchedule {
  /// Name (SolverInfo::name) of the solver that found the schedule. It is `none` for the baseline.
  std::string_view solver = "none";
  core::Schedule lowest;  ///< schedule with the lowest peak found, even if its plan is not the lowest
  solvers::Bound bound;   ///< lower bound in bytes: no schedule in the bound's scope needs fewer
  solvers::Stop stop = solvers::Stop::ended;
  std::vector<solvers::Tradeoff> tradeoffs;  ///< peaks and costs of schedules that the solver found
  double seconds = 0;                        ///< time that the search took
  std::int64_t work = 0;                     ///< work of the search, in the unit of core::Limit::work

  bool proved() const { return memory() <= bound.value; }
};

struct LeastBudgetOptions {
  solvers::SolveOptions search;  ///< options of the solver; budget and max_cost are not read
  solvers::PlanOptions plan;     ///< options of plans; guards do not count towards the budget
  bool peak_only = false;        ///< whether budgets limit peaks; if so, nothing is planned
  std::int64_t enough = 0;       ///< a schedule that needs at most this many bytes ends the search
};

/// Finds the least budget within which a schedule exists. The search runs in rounds, each at least three times as
/// long as the one before. A round consists of these parts:
/// - A call of the solver without a budget.
/// - Calls under budgets below the lowest peak found, because a solver reaches lower peaks under a budget than without
/// one. The distance below the lowest peak grows after each success and shrinks after each failure.
/// - If plans need more than peaks, a search for schedule and addresses together (solvers::search_placed()). Its
/// budgets lie between the lowest peak and the lowest plan.
///
/// The schedules with the lowest peaks are planned. `rounded` is `problem.rounded_up(options.plan.alignment)`.
///
/// Limits only decide after which call the search ends; they do not change what is tried. So the same limit of work
/// gives the same answer, and a larger limit gives an answer that is at least as good. `enough` ends the same search
/// earlier. So a budget that `cairn info` has printed is found again in no more time. Throws DefectError if the
/// solver's answer is wrong. Throws InputError if the solver does not accept the graph.
LeastBudget find_least_budget(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                              const LeastBudgetOptions& options);

/// Returns the baseline if its plan fits into `budget` bytes. Otherwise returns nothing. `rounded` is
/// `problem.rounded_up(options.alignment)`.
std::optional<LeastBudget> baseline_within(const Problem& problem, const Problem& rounded, std::int64_t budget,
                                           solvers::PlanOptions options);

/// Finds the least budget after a search found nothing within the problem's budget. Starts with `known` or, if `known`
/// is empty, with the answer of find_least_budget(). If this answer is above the budget and not proved to be the least,
/// calls find_least_budget() with all solvers. All calls together keep to the limit.
LeastBudget least_known(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                        std::optional<LeastBudget> known, const LeastBudgetOptions& options);

/// Fraction of a command's time that find_least_budget() gets when the user asks for the least budget. A later `solve`
/// command under that budget runs the same search again (FitOptions::secure_share). The fraction is below 1 so that
/// this second search has slightly more time than the first and reaches the same result.
constexpr double kLeastBudgetShare = 0.85;

/// Returns the work limit for a call of find_least_budget() whose answer has to be repeatable. Returns the limit's
/// work, if it has one. Otherwise returns the work that a slow computer does in the limit's seconds, or kAnyWork if the
/// limit has no seconds either. On an even slower computer, the seconds still end the search.
std::int64_t least_budget_work(const core::Limit& limit);

}  // namespace cairn::fit
