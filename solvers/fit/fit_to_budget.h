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
  /// Fraction of the remaining wall time for each call of the solver. The rest is for plans and further calls.
  /// `later_share` replaces `share` if the first plan fits at once, because no further calls are then expected.
  double share = 0.5, later_share = 0.5;
  /// Fraction of the wall time for a short first call, which shows whether plans will fit easily. 0: there is no such
  /// call.
  double first_share = 0;
  /// Largest fraction of the remaining time for find_least_budget(), which is called when nothing fits after the first
  /// call or after the calls for lower peaks. That call gets the work limit of least_budget_work(). So a budget that an
  /// earlier command found with the same work is met here again, if time allows. 0: find_least_budget() is not called.
  double secure_share = 0;
};

/// Returns options that suit a user who waits for the answer. The first call gets 5% of the time. If plans fit easily,
/// the next call gets nearly all the rest; otherwise each call gets half of the remaining time.
FitOptions patient(const core::Graph& graph, solvers::SolveOptions search, solvers::PlanOptions plan);

/// The result of fit_to_budget(). The schedule is the cheapest whose plan fits into the budget or, if none fits, the
/// one with the lowest plan that was met. Peak and cost are measured on the graph with sizes rounded up to the
/// alignment, but the plan is of the graph itself. Bounds and status refer to all schedules within the budget, or say
/// why there is none.
struct Fit : Solved {
  std::int64_t budget = 0;
  std::optional<LeastBudget> least;  ///< result of find_least_budget, if it was called
  int rounds = 0;                    ///< number of calls of the solver

  bool fits() const { return plan && plan->bytes <= budget; }
};

/// Finds a schedule whose plan, not only its peak, fits into the problem's budget, within the wall time of
/// options.search. The problem must have a budget. `rounded` is problem.rounded_up(options.plan.alignment).
///
/// A plan can exceed the budget although the peak does not, because of fragmentation. Then the solver's budget is
/// lowered by the excess, but by at least 0.5%, and the solver is called again from the best schedule so far. Once a
/// plan has fitted under one budget and not under another, the next call takes the middle of the two. The solver is
/// also called again if the plan fits but the solver could have used the time that is left. Each call has the whole
/// work limit; max_rounds bounds the number of calls. The result is never worse than what options.search.start is known
/// to reach. If no plan fits at first, the schedule of find_least_budget() is the answer unless a cheaper one is found
/// (options.secure_share).
///
/// With the solver `auto` and a graph of at least 300 nodes, plans that exceed the budget cause additional calls, which
/// max_rounds does not count. These look for a peak low enough that its plan would fit, or for a cheap schedule of
/// about that peak. solvers::search_placed(), which searches schedule and addresses together, then takes the rest of
/// the limit.
///
/// After Ctrl-C, a long schedule is not planned. Throws DefectError if the solver's schedule is invalid or its measures
/// are wrong.
Fit fit_to_budget(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                  const FitOptions& options);

}  // namespace cairn::fit
