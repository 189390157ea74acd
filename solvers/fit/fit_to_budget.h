#pragma once

#include <cstdint>
#include <optional>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/fit/solve.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/solvers/registry.h"

namespace cairn::fit {

/// Returns the fraction of `seconds` to spend on one search, so that its schedule can be planned in the remaining time.
double share_for_search(const core::Graph& graph, double seconds);

/// Options of the search for a schedule whose plan fits.
struct FitOptions {
  solvers::SolveOptions search;                    ///< options of the solver; its budget is not read
  solvers::PlanOptions plan = {.alignment = 256};  ///< options of plans; guards do not count towards the budget
  int max_rounds = 8;                              ///< largest number of calls of the solver
  /// Fraction of the remaining wall time for each call of the solver. The rest is for plans and further calls. `share`
  /// is the usual fraction. `later_share` replaces it once the first plan fits, because few further calls are then
  /// expected.
  double share = 0.5, later_share = 0.5;
  /// Fraction of the wall time for a short first call, which shows whether plans will fit easily. 0: no such call is
  /// made.
  double first_share = 0;
  /// Largest fraction of the remaining time for find_least_budget(). This function is called when nothing fits after
  /// the first call of the solver, or after the calls for lower peaks. It gets the work limit of least_budget_work().
  /// So if an earlier command found a budget with the same work, this call finds it again, if time allows. 0:
  /// find_least_budget() is not called.
  double secure_share = 0;
};

/// Returns options that suit a user who waits for the answer. The first call of the solver gets 5% of the time. If
/// plans fit easily, each further call gets up to 75% of the remaining time; otherwise up to half of it.
FitOptions patient(const core::Graph& graph, solvers::SolveOptions search, solvers::PlanOptions plan);

/// The result of fit_to_budget(). The schedule is the cheapest schedule found whose plan fits into the budget. If no
/// plan fits, it is the schedule with the lowest plan found. Peak and cost are measured on the graph with sizes rounded
/// up to the alignment, but the plan is of the graph itself. Bounds and status refer to all schedules within the
/// budget, or say why there is none.
struct Fit : Solved {
  std::int64_t budget = 0;
  std::optional<LeastBudget> least;  ///< result of find_least_budget(), if that was called
  int rounds = 0;                    ///< number of calls of the solver

  bool fits() const { return plan && plan->bytes <= budget; }
};

/// Finds a schedule whose plan, not only its peak, fits into the problem's budget. Keeps to the wall time of
/// options.search. The problem must have a budget. `rounded` is `problem.rounded_up(options.plan.alignment)`.
///
/// A plan can exceed the budget although the peak does not, because of fragmentation. In that case the solver's budget
/// is lowered by the excess, but by at least 0.5%, and the solver is called again from the best schedule so far. Once a
/// plan has fitted under one budget and not under another, the next call gets the middle of these two budgets. The
/// solver is also called again if the plan fits but the solver could have used the time that is left. Each call has the
/// whole work limit; max_rounds bounds the number of calls. The result is never worse than options.search.start. If no
/// plan fits at first, the schedule of find_least_budget() is the answer unless a cheaper one is found
/// (options.secure_share).
///
/// With the solver `auto` and a graph of at least 300 nodes, plans that exceed the budget cause additional calls, which
/// max_rounds does not count. Some of these calls look for a peak so low that its plan fits, others for a cheap
/// schedule of about that peak. Afterwards, solvers::search_placed() searches schedule and addresses together for the
/// rest of the limit.
///
/// After Ctrl-C, a long schedule is not planned. The schedule and its measures are as the solver gave them:
/// `evaluation` is empty, and evaluate_again() checks them.
Fit fit_to_budget(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                  const FitOptions& options);

}  // namespace cairn::fit
