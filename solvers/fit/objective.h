#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "cairn/core/plan.h"
#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/fit/curve.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/fit/solve.h"
#include "cairn/solvers/registry.h"

/// One schedule of a graph: what is looked for, the search, and how good the answer is.
namespace cairn::fit {

enum class Objective : std::uint8_t {
  within_budget,  ///< the cheapest whose plan fits
  within_peak,    ///< the cheapest whose peak fits
  within_cost,    ///< the least peak that costs no more
  least_peak,     ///< then the least cost
  least_budget,   ///< the lowest plan, then the least cost
  knee,           ///< of the curve from memory to cost
};
std::string_view to_string(Objective objective);

struct Task {
  Problem problem;  ///< with the budget, where the objective has one
  Objective objective = Objective::least_peak;
  std::int64_t alignment = 1;            ///< of plans, in bytes
  std::optional<std::int64_t> max_cost;  ///< of Objective::within_cost
  Problem rounded = problem.rounded_up(alignment);

  bool plans_fit() const {
    return objective == Objective::within_budget || objective == Objective::knee ||
           objective == Objective::least_budget;
  }
  /// What is searched: sizes are rounded up where plans are to fit.
  const Problem& searched() const { return plans_fit() ? rounded : problem; }
  /// Whether no schedule is as cheap as was asked for: running every node once costs more.
  bool unaffordable() const { return max_cost && *max_cost < problem.baseline.cost; }
};

/// The best that was found. Bounds are about what was searched.
struct Answer {
  Solved found;
  std::optional<core::Plan>
      plan;  ///< without guards; none for a long schedule after Ctrl-C: people wait for the prompt
  bool success = false;
  std::optional<Curve> curve;        ///< of Objective::knee
  std::optional<LeastBudget> least;  ///< of Objective::least_budget, and where nothing fitted at once
  int rounds = 1;                    ///< calls of the solver, where plans are to fit

  bool plan_alone_misses(std::optional<std::int64_t> budget) const { return plan && found.within(budget); }
  /// Whether there is something to write: the answer or, where that is not proved pointless, the best so far.
  bool has_schedule() const {
    return success || (!found.solution.schedule.steps.empty() && found.solution.status != solvers::Status::infeasible);
  }
};

/// Searches, within the limit of `search`, whose budget and max_cost are not read, and plans what it finds. Stopped
/// before anything is known, it answers with the baseline and Status::not_found. The task must be affordable. `known`:
/// what find_least_budget said, so that it is not asked again. Throws as solve().
Answer search(const Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
              const std::function<void(const CurveProgress&)>& curve_progress = {}, const LeastBudget* known = nullptr);

/// The least budget known after a search: what the answer and the search met or, where nothing was found, least_known
/// within the limit of `search`.
LeastBudget least_budget_after(const Task& task, const Answer& answer, const solvers::SolverInfo& solver,
                               const solvers::SolveOptions& search);

/// How far an answer may be from the best.
struct Gap {
  enum class Of : std::uint8_t { cost, peak, plan };  ///< the last two in bytes
  Of of = Of::cost;                                   ///< what is least
  std::int64_t value = 0;                             ///< of the answer, on the graph that was searched
  solvers::Bound bound;                               ///< none within the limits of the task has less

  std::string_view of_what() const { return of == Of::cost ? "cost" : of == Of::peak ? "peak" : "planned bytes"; }
  double pct() const { return gap_pct(value, bound); }
};
/// The answer must be a success. O(n + m).
Gap gap_of(const Task& task, const Answer& answer);

/// A bound on the cost of the schedules within the problem's budget that keep to options.scope, by
/// solvers::cost_bound within options.limit; none: there is no such schedule. `known_cost`: of one. The problem must
/// have a budget, of planned bytes.
std::optional<solvers::Bound> least_cost_bound(const Problem& problem, const solvers::SolveOptions& options,
                                               std::optional<std::int64_t> known_cost = std::nullopt);

}  // namespace cairn::fit
