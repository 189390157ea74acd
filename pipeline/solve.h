#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/pipeline/least_budget.h"
#include "cairn/pipeline/problem.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/solvers/registry.h"

namespace cairn::pipeline {

/// Whether the solver succeeded, within the budget where there is one. The empty graph's schedule has no steps, so its
/// status decides, not the steps.
bool meets(const solvers::Solution& solution, std::optional<std::int64_t> budget);

/// Evaluates the schedule that a solver returned. Throws DefectError where it is invalid, or its measures are not what
/// the solver says.
core::Evaluation evaluate_again(std::string_view solver, const core::Graph& graph, const solvers::Solution& solution);

/// A solution whose schedule was evaluated again.
struct Solved {
  solvers::Solution solution;
  core::Evaluation evaluation;  ///< of the schedule, where there is one
  double seconds = 0;

  bool within(std::optional<std::int64_t> budget) const { return meets(solution, budget); }
};

/// Solves and checks. Throws DefectError where the schedule is invalid or its measures are wrong, InputError where the
/// solver does not take the graph.
Solved solve(const core::Graph& graph, const solvers::SolverInfo& solver, const solvers::SolveOptions& options = {});

/// solvers::find_plan of a schedule's buffers, checked. Throws DefectError where the plan is wrong.
solvers::PlanSolution checked_plan(const core::Graph& graph, const core::Schedule& schedule,
                                   const solvers::PlanOptions& options);
/// The same of a free-standing problem: buffer i of the plan is specs[i], with `last` = upper - 1. Throws InputError,
/// which names the buffers, where fixed offsets contradict each other, the forbidden addresses or the capacity.
solvers::PlanSolution checked_plan(const std::vector<core::BufferSpec>& specs,
                                   const std::vector<core::AddressRange>& forbidden,
                                   const solvers::PlanOptions& options);

/// A plan that was searched, to be reported.
struct FoundPlan {
  solvers::PlanSolution solution;
  double seconds = 0;  ///< of the search
  std::optional<std::int64_t> capacity;

  bool fits() const { return !capacity || solution.plan.bytes <= *capacity; }
  /// As to the capacity, whether or not the planner was told it.
  solvers::Status status() const;
};

/// Throws DefectError with what a check of a plan says; empty: it is right.
void require_right(const std::string& defect);

/// Whether some node has an op, so that kernels execute it.
bool has_ops(const core::Graph& graph);
/// What sizes and offsets of a plan are multiples of where nobody says: 256 bytes where some node has an op, as kernels
/// read what lies there; 1 where none has, as in graphs of sizes and costs alone.
std::int64_t default_alignment(const core::Graph& graph);

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

/// A schedule with its plan, and who made it: all that an execution needs.
struct Decision {
  std::string solver;
  core::Schedule schedule;
  core::Plan plan;                  ///< the one executed: with guards, if asked for
  std::int64_t guard_bytes = 0;     ///< behind every buffer of the plan
  std::int64_t budgeted_bytes = 0;  ///< of the plan without guards, which the budget is on
  core::Evaluation evaluation;      ///< on the graph as given
  std::int64_t predicted_peak = 0;  ///< with sizes rounded up to the alignment: what the plan needs at least
};

/// Plans a schedule, unless `plan` (without guards) is known, and evaluates it.
Decision decide_on(const core::Graph& graph, std::string solver, core::Schedule schedule,
                   const solvers::PlanOptions& options, std::optional<core::Plan> plan = std::nullopt);
/// The graph's input order.
Decision decide_on_baseline(const core::Graph& graph, const solvers::PlanOptions& options);

/// From a problem with a budget to a schedule whose plan fits. Throws core::Error, with what is known in one line,
/// where none is found; DefectError as solve().
Decision decide(const Problem& problem, std::string_view solver = "auto", const FitOptions& options = {});

}  // namespace cairn::pipeline
