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

/// A budget that is known to be met, with what meets it.
struct LeastBudget : PlannedSchedule {
  std::int64_t bytes = 0;            ///< memory() once there is a schedule
  std::string_view solver = "none";  ///< SolverInfo::name; `none` for the baseline
  core::Schedule lowest;             ///< of the least peak that was met, whatever its plan
  solvers::Bound bound;              ///< bytes: no schedule of that scope has less
  solvers::Stop stop = solvers::Stop::ended;
  std::vector<solvers::Tradeoff> tradeoffs;  ///< of schedules that the solver met
  double seconds = 0;                        ///< of the search
  std::int64_t work = 0;                     ///< of the search, the unit of core::Limit::work

  bool proved() const { return bytes <= bound.value; }
};

struct LeastBudgetOptions {
  solvers::SolveOptions search;  ///< its budget and max_cost are not read
  solvers::PlanOptions plan;     ///< guards come beside the budget
  bool peak_only = false;        ///< budgets are on peaks, nothing is planned
  std::int64_t enough = 0;       ///< bytes: a schedule that needs no more ends the search
};

/// The least budget that some schedule meets, by rounds each three times as long as the one before: a call of the
/// solver without a budget; calls under budgets that are below the lowest peak by a step, which grows while they are
/// met and shrinks where not, as a search for a budget gets lower than one without; and, where plans need more than
/// peaks, schedule and plan together under budgets between the two (solvers::search_placed). The lowest schedules that
/// are met on the way are planned. `rounded`: problem.rounded_up(options.plan.alignment).
///
/// What is tried does not depend on the limits, which only say after which call it ends: the answer is the same when it
/// is asked for again with the same limit of work, no worse with a larger one, and `enough` ends the same search
/// sooner, so that what was promised is found again in no more time. Throws DefectError where the solver is wrong,
/// InputError where it does not take the graph.
LeastBudget find_least_budget(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                              const LeastBudgetOptions& options);

/// The baseline, where its plan fits into so many bytes. `rounded`: as above, with options.alignment.
std::optional<LeastBudget> baseline_within(const Problem& problem, const Problem& rounded, std::int64_t budget,
                                           solvers::PlanOptions options);

/// The least budget known where nothing was found within the problem's: `known`, else what find_least_budget says and,
/// where that is above the budget and not proved least, what it says of all solvers, together within the limit.
LeastBudget least_known(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                        std::optional<LeastBudget> known, const LeastBudgetOptions& options);

/// What part of the time of a whole command find_least_budget has, so that `solve` has a little more for the same
/// search under the budget that it found (FitOptions::secure_share).
constexpr double kLeastBudgetShare = 0.85;

/// The work that a limit means for it where the answer is to be the same again: its work, or what a slow machine does
/// in its seconds; without either, kAnyWork. The seconds end it on still slower ones.
std::int64_t least_budget_work(const core::Limit& limit);

}  // namespace cairn::fit
