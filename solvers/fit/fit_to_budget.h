#pragma once

#include <cstdint>
#include <optional>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/solvers/registry.h"

namespace cairn::fit {

/// How much of that wall time may go into one search, so that a plan of what it finds is made in the rest.
double share_for_search(const core::Graph& graph, double seconds);

/// How to look for a schedule whose plan fits.
struct FitOptions {
  solvers::SolveOptions search;                    ///< its budget is not read
  solvers::PlanOptions plan = {.alignment = 256};  ///< guards come beside the budget
  int max_rounds = 8;                              ///< how often the solver may be called
  /// Of the wall time that is left, for each call; plans, and other calls, need the rest. Where the first plan fits
  /// at once, so that no other calls are expected, later_share.
  double share = 0.5, later_share = 0.5;
  /// Of the wall time, for a first call that tells whether plans will fit; 0: none.
  double first_share = 0;
  /// Where nothing fits after a first call, nor after those that aim at lower peaks: what part of the time that is left
  /// find_least_budget may take at most, for the work that least_budget_work says, so that what it promised elsewhere
  /// is kept here, if there is time; 0: it is not asked.
  double secure_share = 0;
};

/// The same with the time divided as it is best for people who wait: a first call of 5%, then nearly all, or calls of
/// half of what is left where plans do not fit easily.
FitOptions patient(const core::Graph& graph, solvers::SolveOptions search, solvers::PlanOptions plan);

/// A schedule whose plan, not only its peak, is to fit into a budget.
struct Fit {
  /// Peak and cost are those of the graph with sizes rounded up to the alignment; bounds and status are about all
  /// schedules within the budget, or say why there is none.
  solvers::Solution solution;
  std::optional<core::Plan> plan;  ///< of the solution's schedule on the graph itself: the cheapest that fits, or the
                                   ///< lowest that was met
  std::int64_t budget = 0;
  std::optional<LeastBudget> least;  ///< what find_least_budget said, where it was asked
  int rounds = 0;                    ///< how often the solver was called
  double seconds = 0;

  bool fits() const { return plan && plan->bytes <= budget; }
};

/// Solves `rounded`, which is problem.rounded_up(options.plan.alignment), and plans, all within the wall time of
/// options.search. Where nothing fits at once, the schedule of find_least_budget is the answer unless a cheaper one is
/// found (options.secure_share). Where the plan needs more than the problem's budget (fragmentation), the solver's
/// budget is lowered by the excess, by 0.5% at least, and it is called again, from the best schedule so far, then
/// halfway between what fits and what does not; and again where the plan fits and there is time that it could have
/// used. Each call has the whole work limit. What options.search.start is known to reach is never lost. Where the
/// solver is `auto` and plans of a graph of 300 nodes or more exceed the budget, calls for a peak that is so much lower
/// that its plan would fit, or of about that peak and cheap, are followed by solvers::search_placed, which takes what
/// is left of the limit; max_rounds does not count them. The problem must have a budget. The schedule is as the solver
/// gave it: evaluate_again() checks it. After Ctrl-C, a long schedule is not planned.
Fit fit_to_budget(const Problem& problem, const Problem& rounded, const solvers::SolverInfo& solver,
                  const FitOptions& options);

}  // namespace cairn::fit
