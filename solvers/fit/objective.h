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

/// The search for one schedule of a graph: the objective, the search, and how good the answer is.
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
  Problem problem;  ///< the graph; has a budget if the objective needs one
  Objective objective = Objective::least_peak;
  std::int64_t alignment = 1;            ///< alignment of plans, in bytes
  std::optional<std::int64_t> max_cost;  ///< most cost of the schedule; for Objective::within_cost
  Problem rounded = problem.rounded_up(alignment);

  bool plans_fit() const {
    return objective == Objective::within_budget || objective == Objective::knee ||
           objective == Objective::least_budget;
  }
  /// The problem that is searched: `rounded`, with sizes rounded up, where plans have to fit.
  const Problem& searched() const { return plans_fit() ? rounded : problem; }
  /// Whether no schedule is cheap enough: running every node once already costs more.
  bool unaffordable() const { return max_cost && *max_cost < problem.baseline.cost; }
};

/// The best answer found. Bounds are about the problem that was searched.
struct Answer {
  Solved found;  ///< without a plan for a long schedule after Ctrl-C, as planning takes time
  bool success = false;
  std::optional<Curve> curve;  ///< curve that was computed; for Objective::knee
  /// Least budget that was found; for Objective::least_budget, and where nothing fitted at once.
  std::optional<LeastBudget> least;
  int rounds = 1;  ///< number of calls of the solver, where plans have to fit

  bool plan_alone_misses(std::optional<std::int64_t> budget) const { return found.plan && found.within(budget); }
  /// Whether there is a schedule to write to a file: the answer, or the best so far unless the task is proved
  /// infeasible.
  bool has_schedule() const {
    return success || (!found.solution.schedule.steps.empty() && found.solution.status != solvers::Status::infeasible);
  }
};

/// Searches a schedule for the task's objective, and plans it. Keeps to the limit of `search`, whose budget and
/// max_cost are not read. If stopped before anything is known, answers with the baseline and Status::not_found. The
/// task must be affordable. `known`: an earlier result of find_least_budget, which saves a second call. Throws as
/// solve().
Answer search(const Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
              const std::function<void(const CurveProgress&)>& curve_progress = {}, const LeastBudget* known = nullptr);

/// Finds the least budget known after a search: the least that the answer and the search met. If the search found
/// nothing, calls least_known within the limit of `search`.
LeastBudget least_budget_after(const Task& task, const Answer& answer, const solvers::SolverInfo& solver,
                               const solvers::SolveOptions& search);

/// How far an answer may be from the best one.
struct Gap {
  enum class Of : std::uint8_t { cost, peak, plan };  ///< measures with a gap; peak and plan are in bytes
  Of of = Of::cost;                                   ///< the measure that is to be least
  std::int64_t value = 0;                             ///< measure of the answer, on the graph that was searched
  /// Lower bound on the same measure, within the limits of the task.
  solvers::Bound bound;

  std::string_view of_what() const { return of == Of::cost ? "cost" : of == Of::peak ? "peak" : "planned bytes"; }
  double pct() const { return gap_pct(value, bound); }
};
/// Computes the gap of an answer, which must be a success. O(n + m).
Gap gap_of(const Task& task, const Answer& answer);

/// Computes a bound on the cost of the schedules within the problem's budget that keep to options.scope, by
/// solvers::cost_bound within options.limit; empty: there is no such schedule. `known_cost`: the cost of a known
/// schedule. The problem must have a budget, of planned bytes.
std::optional<solvers::Bound> least_cost_bound(const Problem& problem, const solvers::SolveOptions& options,
                                               std::optional<std::int64_t> known_cost = std::nullopt);

}  // namespace cairn::fit
