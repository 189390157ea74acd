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

/// Fraction of `seconds` to spend on one search, so that its schedule can be planned in the rest.
double share_for_search(const core::Graph& graph, double seconds);

/// Options of the search for a schedule whose plan fits.
struct FitOptions {
  solvers::SolveOptions search;                    ///< options of the solver; the budget among them is not read
  solvers::PlanOptions plan = {.alignment = 256};  ///< options of plans; guards are not counted in the budget
  int max_rounds = 8;                              ///< most calls of the solver
  /// Fraction of the wall time left that each call of the solver gets; plans and further calls need the rest.
  /// `later_share` applies where the first plan fits at once, so that no further calls are expected.
  double share = 0.5, later_share = 0.5;
  /// Fraction of the wall time for a short first call, which tells whether plans will fit; 0: no such call.
  double first_share = 0;
  /// Largest fraction of the time left for find_least_budget, called when nothing fits after a first call or after
  /// calls for lower peaks. It gets the work of least_budget_work, so that a budget that it found in an earlier command
  /// is met here, if time allows. 0: it is not called.
  double secure_share = 0;
};

/// Options that divide the time well for a waiting user: a first call of 5%, then nearly all, or calls of half of the
/// time left where plans do not fit easily.
FitOptions patient(const core::Graph& graph, solvers::SolveOptions search, solvers::PlanOptions plan);

/// The result of fit_to_budget: a schedule whose plan, not only its peak, has to fit into a budget. It is the cheapest
/// whose plan fits, or the one of the lowest plan that was met. Peak and cost are of the graph with sizes rounded up to
/// the alignment; the plan is of the graph itself. Bounds and status are about all schedules within the budget, or say
/// why there is none.
struct Fit : Solved {
  std::int64_t budget = 0;
  std::optional<LeastBudget> least;  ///< result of find_least_budget, if it was called
  int rounds = 0;                    ///< number of calls of the solver

  bool fits() const { return plan && plan->bytes <= budget; }
};

/// Finds a schedule whose plan fits into the problem's budget, within the wall time of options.search. `rounded` is
/// problem.rounded_up(options.plan.alignment). The problem must have a budget.
///
/// Where the plan needs more than the problem's budget (fragmentation), the solver's budget is lowered by the excess,
/// by 0.5% at least, and the solver is called again from the best schedule so far. Later calls go halfway between a
/// budget whose plan fits and one whose plan does not. The solver is also called again where the plan fits and time is
/// left that it could have used. Each call has the whole work limit; max_rounds bounds their number. What
/// options.search.start is known to reach is never lost. Where nothing fits at once, the schedule of find_least_budget
/// is the answer unless a cheaper one is found (options.secure_share).
///
/// Where the solver is `auto` and plans of a graph of 300 nodes or more exceed the budget, calls that max_rounds does
/// not count look for a peak so much lower that its plan would fit, or for a cheap schedule of about that peak.
/// solvers::search_placed follows and takes the rest of the limit.
///
/// After Ctrl-C, a long schedule is not planned. Throws DefectError if the solver's schedule is invalid or its measures
/// are wrong.
Fit fit_to_budget(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                  const FitOptions& options);

}  // namespace cairn::fit
