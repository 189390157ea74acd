#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/fit/curve.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/fit/solve.h"
#include "cairn/solvers/registry.h"

/// Searches for one schedule of a graph. The header states which objective the schedule has, how it is found, and how
/// good it is.
namespace cairn::fit {

enum class Objective : std::uint8_t {
  within_budget,  ///< cheapest schedule whose plan fits
  within_peak,    ///< cheapest schedule whose peak fits
  within_cost,    ///< least peak among the schedules that cost at most max_cost
  least_peak,     ///< least peak, then least cost
  least_budget,   ///< lowest plan, then least cost
  knee,           ///< knee of the curve of cost over memory
};
std::string_view to_string(Objective objective);

struct Task {
  Problem problem;  ///< the graph, with a budget if the objective needs one
  Objective objective = Objective::least_peak;
  std::int64_t alignment = 1;            ///< alignment of plans, in bytes
  std::optional<std::int64_t> max_cost;  ///< largest cost of the schedule; for Objective::within_cost
  Problem rounded = problem.rounded_up(alignment);

  bool plans_fit() const {
    return objective == Objective::within_budget || objective == Objective::knee ||
           objective == Objective::least_budget;
  }
  /// Returns the problem that is searched. If plans have to fit, this is `rounded`, in which sizes are rounded up.
  const Problem& searched() const { return plans_fit() ? rounded : problem; }
  /// Returns whether every schedule is too expensive, because running each node once already costs more than max_cost.
  bool unaffordable() const { return max_cost && *max_cost < problem.baseline.cost; }
};

/// The best answer found. Bounds refer to Task::searched().
struct Answer {
  /// The answer. It has no plan if Ctrl-C ended the search and the schedule is long, because planning takes time.
  Solved found;
  bool success = false;
  std::optional<Curve> curve;  ///< the curve that was computed; for Objective::knee
  /// Least budget that was found. It is set for Objective::least_budget, and for searches whose first plan did not fit.
  std::optional<LeastBudget> least;
  int rounds = 1;  ///< number of calls of the solver, if plans have to fit

  bool plan_alone_misses(std::optional<std::int64_t> budget) const { return found.plan && found.within(budget); }
  /// Returns whether there is a schedule to write to a file. If the search failed, this is the best schedule so far,
  /// unless the task is proved infeasible.
  bool has_schedule() const {
    return success || (!found.solution.schedule.steps.empty() && found.solution.status != solvers::Status::infeasible);
  }
};

/// Searches for a schedule that meets the task's objective, and plans it. Keeps to the limit of `search`; the budget
/// and the max_cost of `search` are not read. If the search is stopped before any schedule is known, the answer is the
/// baseline with Status::not_found. Requires that task.unaffordable() is false. `known` is an earlier result of
/// find_least_budget(), which saves a second call. Throws as solve() does.
Answer search(const Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
              const std::function<void(const CurveProgress&)>& curve_progress = {}, const LeastBudget* known = nullptr);

/// Returns the least budget known after a search, of all budgets that the answer and the search found. If the search
/// found nothing, calls least_known() within the limit of `search`.
LeastBudget least_budget_after(const Task& task, const Answer& answer, const solvers::SolverInfo& solver,
                               const solvers::SolveOptions& search);

/// States how far an answer may be from the best possible answer.
struct Gap {
  enum class Of : std::uint8_t { cost, peak, plan };  ///< measures that can have a gap; peak and plan are in bytes
  Of of = Of::cost;                                   ///< the measure that is minimised
  std::int64_t value = 0;  ///< the answer's value of the measure, on the graph that was searched
  /// Lower bound on the measure, over all schedules that the task allows.
  solvers::Bound bound;

  std::string_view of_what() const { return of == Of::cost ? "cost" : of == Of::peak ? "peak" : "planned bytes"; }
  double pct() const { return gap_pct(value, bound); }
};
/// Computes the gap of an answer, which must be a success. O(n + m).
Gap gap_of(const Task& task, const Answer& answer);

/// Computes a lower bound on the cost of the schedules within the problem's budget and in options.scope. Returns
/// nothing if it is proved that there is no such schedule. Calls solvers::cost_bound() within options.limit.
/// `known_cost` is the cost of a known schedule. The problem must have a budget, which counts planned bytes.
std::optional<solvers::Bound> least_cost_bound(const Problem& problem, const solvers::SolveOptions& options,
                                               std::optional<std::int64_t> known_cost = std::nullopt);

}  // namespace cairn::fit
