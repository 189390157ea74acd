#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/common/certificate.h"
#include "cairn/solvers/fit/curve.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/fit/solve.h"
#include "cairn/solvers/registry.h"

/// Searches for one schedule of a graph that meets an objective, and says how far this schedule may be from the best
/// schedule.
namespace cairn::fit {

enum class Objective : std::uint8_t {
  within_budget,  ///< cheapest schedule whose plan fits into the budget
  within_peak,    ///< cheapest schedule whose peak is within the budget
  within_cost,    ///< least peak among the schedules that cost at most max_cost
  least_peak,     ///< least peak; among equal peaks, least cost
  least_budget,   ///< plan of fewest bytes; among equal plans, least cost
  knee,           ///< knee of the curve of cost over memory
};
std::string_view to_string(Objective objective);

struct Task {
  Problem problem;  ///< the graph, with a budget if the objective needs one
  Objective objective = Objective::least_peak;
  std::int64_t alignment = 1;            ///< alignment of plans, in bytes
  std::optional<std::int64_t> max_cost;  ///< largest cost of the schedule; for Objective::within_cost
  std::int64_t overlap_steps = 0;        ///< steps for which a finished buffer stays reserved (PlanOptions)
  Problem rounded = problem.rounded_up(alignment);

  solvers::PlanOptions planning() const { return {.alignment = alignment, .overlap_steps = overlap_steps}; }
  bool plans_fit() const {
    return objective == Objective::within_budget || objective == Objective::knee ||
           objective == Objective::least_budget;
  }
  /// Returns the problem that the solver gets. If the objective concerns plans, this is `rounded`, because planners
  /// round sizes up.
  const Problem& searched() const { return plans_fit() ? rounded : problem; }
  /// Returns whether no schedule costs at most max_cost, because running each node once already costs more.
  bool unaffordable() const { return max_cost && *max_cost < problem.baseline.cost; }
};

/// Holds the best answer found. Its bounds hold for the graph of Task::searched().
struct Answer {
  /// The schedule with its measures. The schedule has no plan if the schedule is long and either Ctrl-C ended the
  /// search or the search failed, because planning takes time.
  Solved found;
  bool success = false;
  std::optional<Curve> curve;  ///< curve that was computed; set for Objective::knee
  /// Result of find_least_budget(), if that function was called. It is called for Objective::least_budget, and for
  /// Objective::within_budget if the first plan does not fit.
  std::optional<LeastBudget> least;
  int rounds = 1;  ///< number of calls of the solver; counted for Objective::within_budget only

  /// Returns whether the schedule's peak is within the budget and the schedule has a plan. If the search failed
  /// although this is true, only the plan is too high.
  bool plan_alone_misses(std::optional<std::int64_t> budget) const { return found.plan && found.within(budget); }
  /// Returns whether there is a schedule to write to a file. If the search failed, this is the best schedule found,
  /// unless it is proved that no schedule meets the task.
  bool has_schedule() const {
    return success || (!found.solution.schedule.steps.empty() && found.solution.status != solvers::Status::infeasible);
  }
};

/// Returns four numbers by which answers to one task are compared. Of two answers, the better one has the
/// lexicographically smaller numbers. No number is negative. Below, the bytes are those of the plan or, if there is no
/// plan, those of the peak. The four numbers are:
/// - after a success, if the objective is a low cost: 0, the cost, the distance of the cost from its proved lower
/// bound, and the bytes;
/// - after a success with another objective: 0, the bytes, the cost, and the distance of the bytes from their bound;
/// - after a failure: 1 if it is proved that nothing meets the task, else 2; the bytes (the largest int64 if there is
/// no schedule); the peak; and 0.
std::array<std::int64_t, 4> merit(const Task& task, const Answer& answer);

/// Points to results of earlier searches that a search can use. Does not own them. nullptr: there is no such result.
struct Known {
  /// Result of find_least_budget() with the same limit. For Objective::within_budget, that function is not called
  /// again.
  const LeastBudget* just_found = nullptr;
  /// Result of an earlier command. For Objective::within_budget, it is the answer if nothing else fits. For
  /// Objective::least_budget, the answer never needs more memory than this result.
  const LeastBudget* stored = nullptr;
};

/// Searches for a schedule that meets the task's objective, and plans it. Requires that task.unaffordable() is false.
/// Keeps to the limit of `search`; the budget and the max_cost of `search` are not read. If Ctrl-C ends the search
/// before any schedule is known, the answer is the baseline with Status::not_found. Throws as solve() does.
Answer search(const Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
              const std::function<void(const CurveProgress&)>& curve_progress = {}, const Known& known = {});

/// Returns the least budget known after search(): the least memory of all schedules in the answer. If the search
/// failed, also calls least_known() within the limit of `search`.
LeastBudget least_budget_after(const Task& task, const Answer& answer, const solvers::SolverInfo& solver,
                               const solvers::SolveOptions& search);

/// Looks for a larger budget on the host's memory, after search() found no schedule within the task's budget. Returns a
/// host budget with which such a schedule was found. Returns nothing if the graph has no link to host memory, or if no
/// such host budget was found within the limit.
std::optional<std::int64_t> sufficient_host_budget(const Task& task, const Answer& answer,
                                                   const solvers::SolveOptions& search);

struct Gap {
  enum class Of : std::uint8_t { cost, peak, plan };  ///< measure that the task minimises; peak and plan are in bytes
  Of of = Of::cost;
  std::int64_t value = 0;  ///< the answer's value of the measure
  /// Lower bound on the measure for all schedules that the task allows.
  solvers::Bound bound;

  std::string_view of_what() const { return of == Of::cost ? "cost" : of == Of::peak ? "peak" : "planned bytes"; }
  double pct() const { return gap_pct(value, bound); }
};
/// Computes the gap between an answer, which must be a success, and the lower bound.
Gap gap_of(const Task& task, const Answer& answer);

/// Computes a lower bound on the cost of all schedules in options.scope whose plans fit into the problem's budget. If
/// the graph has core::Graph::host_memory(), bounds the makespan of schedules with transfers. Returns nothing if it is
/// proved that there is no such schedule. Calls solvers::cost_bound() or solvers::makespan_bound() within
/// options.limit. `known_cost` is the cost of a known schedule that fits. The problem must have a budget.
std::optional<solvers::Bound> least_cost_bound(const Problem& problem, const solvers::SolveOptions& options,
                                               std::optional<std::int64_t> known_cost = std::nullopt);

/// Makes a certificate that proves an answer's lower bound as far as that is possible. If the task has a budget, the
/// bound is on the cost of schedules within this budget. For Objective::within_cost, the bound is on the peak, and the
/// certificate proves that no schedule with a lower peak costs at most max_cost. Requires a budget, or max_cost and a
/// successful answer. The graph must not have a link to host memory. The certificate is about the graph of
/// Task::searched().
solvers::Certificate certify(const Task& task, const Answer& answer, core::Stopwatch& watch);
/// Returns whether a certificate of certify() proves all of the answer's bound.
bool proves_bound(const Task& task, const Answer& answer, const solvers::Certificate& certificate);

}  // namespace cairn::fit
