#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/fit/solve.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/solvers/registry.h"

namespace cairn::fit {

/// Returns the fraction of `seconds` that a search may take if the schedule that it finds must be planned in the
/// remaining time.
double share_for_search(const core::Graph& graph, double seconds);

/// Holds the options of the search for a schedule whose plan fits.
struct FitOptions {
  solvers::SolveOptions search;                    ///< options of the solver; `budget` is not read
  solvers::PlanOptions plan = {.alignment = 256};  ///< options of plans; guard bytes do not count towards the budget
  int max_rounds = 8;                              ///< largest number of calls of the solver
  /// Fraction of the remaining wall time that each call of the solver gets. `later_share` replaces `share` after the
  /// first call if the plan of the first call's schedule fits, because few further calls are expected then.
  double share = 0.5, later_share = 0.5;
  /// Fraction of the wall time that the first call gets. A short first call shows early whether plans fit easily. 0:
  /// the first call gets `share`.
  double first_share = 0;
  /// Largest fraction of the remaining time that find_least_budget() gets; 0: that function is not called.
  /// find_least_budget() is called if no plan fits after the first call of the solver, with the work limit
  /// least_budget_work(). If an earlier command has printed a least budget that was found with the same work limit,
  /// find_least_budget() finds the same schedule again, unless time runs out.
  double secure_share = 0;
  /// Earlier result of find_least_budget(). If such a result is given, that function is not called.
  std::optional<LeastBudget> secured = std::nullopt;
  /// A known schedule with its plan, for example of an earlier command. It becomes the answer if nothing fits after all
  /// searches. Searches do not start from it, because this could make their answer worse. Not owned. nullptr: there is
  /// none.
  const PlannedSchedule* fallback = nullptr;
};

/// Returns options for a command whose user waits for the answer. The first call of the solver gets 5% of the time. If
/// the plan of its schedule fits, each further call gets at most 75% of the remaining time, otherwise at most 50%.
FitOptions patient(const core::Graph& graph, solvers::SolveOptions search, solvers::PlanOptions plan);

/// Holds the result of fit_to_budget(). `solution.schedule` is the cheapest schedule found whose plan fits into the
/// budget or, if no plan fits, the schedule with the lowest plan. `solution.peak` and `solution.cost` are measured with
/// sizes rounded up to the alignment; the plan has the original sizes. The bounds hold for all schedules whose plans
/// fit. The status is infeasible if it is proved that there is no such schedule.
struct Fit : Solved {
  std::int64_t budget = 0;
  std::optional<LeastBudget> least;  ///< result of find_least_budget(), if that was called
  int rounds = 0;                    ///< number of calls of the solver

  bool fits() const { return plan && plan->bytes <= budget; }
  /// Returns whether a schedule whose plan has `bytes` bytes, and which costs `with_cost`, is a better answer.
  bool is_improved_by(std::int64_t bytes, std::int64_t with_cost) const {
    if (bytes <= budget) return !fits() || with_cost < solution.cost;
    return !plan || (!fits() && bytes < plan->bytes);
  }
  /// Makes a schedule the answer. `its_plan` is empty if it was not planned. `peak` and `cost` are measured like those
  /// of `solution`. The schedule was found after `at` seconds.
  void take(core::Schedule schedule, std::int64_t peak, std::int64_t cost, std::optional<core::Plan> its_plan,
            double at) {
    plan = std::move(its_plan);
    solution.schedule = std::move(schedule);
    solution.peak = peak;
    solution.cost = cost;
    solution.best_seconds = at;
  }
};

/// Finds a schedule whose plan fits into the problem's budget. The problem must have a budget. `rounded` is
/// `problem.rounded_up(options.plan.alignment)`. Keeps to the wall time of options.search.
///
/// Because of fragmentation, a plan can exceed the budget although the peak does not. So the solver is called several
/// times, each time with a budget on the peak and the best schedule so far as a start:
/// - If a plan exceeds the problem's budget, the budget on the peak is lowered by the excess, but by at least 0.5% of
/// the problem's budget.
/// - If a plan fits under one budget on the peak, but not under a higher budget, the next budget is the middle of these
/// two.
/// - If a plan fits but more time could help the solver, the solver is called again.
/// - If no plan fits, find_least_budget() is called once (see options.secure_share). Its schedule is the answer, unless
/// a cheaper schedule is found whose plan fits.
///
/// Each of these calls has the whole work limit; max_rounds limits the number of calls. The result is never worse than
/// options.search.start.
///
/// With the solver `auto` and a graph of at least 200 nodes, there are additional calls if a plan exceeds the budget;
/// max_rounds does not count them. First, find_least_budget() looks for a schedule whose peak is so low that its plan
/// fits. Next, the highest budget is looked for at which the plan of the solver's schedule fits, by at most six calls.
/// If none fits, the solver looks for a cheaper schedule of about the peak of the first one. Finally,
/// solvers::search_placed() searches for a schedule and its addresses together for the rest of the limit.
///
/// If the graph has core::Graph::host_memory(), the search for recomputation alone gets a part of the time. The rest is
/// spent on schedules with transfers (offload/support/solve.h), whose plans must fit into both budgets. All costs are
/// then makespans, i.e. the time at which the last step and all fetches are over.
///
/// The schedule's measures are those that the solver has reported; `evaluation` is empty, and callers use
/// evaluate_again() to check them. After Ctrl-C, a long schedule is not planned.
Fit fit_to_budget(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                  const FitOptions& options);

}  // namespace cairn::fit
