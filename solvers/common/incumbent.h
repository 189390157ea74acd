#pragma once

#include <cstdint>

#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/front.h"
#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Returns whether planners accept the schedule. Planners add up the bytes that all steps make in 64 bits, so a long
/// schedule could overflow. A schedule that has no more steps than the graph has nodes is always accepted here, because
/// planners themselves refuse a graph that is too large. O(T) for T steps.
bool can_be_planned(const core::Graph& graph, const core::Schedule& schedule);

/// The best schedule within its scope that a solver has found so far. What is best depends on the options:
/// - With a budget, the best schedule is the cheapest within the budget. Ties go to the lower peak. While no schedule
/// within the budget is known, the best is the one of lowest peak. Ties go to the lower cost.
/// - Without a budget, the best schedule is the one of lowest peak. Ties go to the lower cost. Schedules that cost at
/// most options.max_cost are preferred to all others.
class Incumbent {
 public:
  /// Starts with options.start, if that schedule is in scope(). `own` is the scope in which the solver searches.
  /// scope() is the intersection of `own` and options.scope. Options and watch must outlive the object. Reported times
  /// are those of the watch.
  Incumbent(const core::Graph& graph, const SolveOptions& options, const core::Stopwatch& watch,
            const Scope& own = kAnySchedule);

  /// Removes the steps that nothing reads and the repeated runs of pinned nodes, and evaluates the schedule. Keeps the
  /// schedule if it is in the scope, can be planned and is better than the best so far. Returns the measures of the
  /// schedule. Throws std::logic_error if the schedule is invalid, which is a bug of the solver. O(T + sum of
  /// in-degrees) for T steps.
  core::Evaluation offer(const core::Schedule& schedule);

  /// Records the peak and cost of a schedule that another solver found within the scope. The schedule itself is not
  /// kept.
  void note(const Tradeoff& tradeoff);

  /// Returns whether a schedule within the budget is known. Without a budget, returns whether a schedule that costs at
  /// most options.max_cost is known. If neither is given, returns true from the first offer on.
  bool within_budget() const;
  /// Returns whether the peak is within the budget. Always true if there is no budget.
  bool fits(std::int64_t peak) const;
  /// Returns whether the bounds prove that no schedule within the budget is cheaper than schedule(). Without a budget,
  /// returns whether they prove that no schedule has a lower peak.
  bool optimal() const;
  /// Returns whether further search is useless. This is so in two cases. First, the schedule is optimal() and the
  /// bounds prove that no schedule costs less. Second, the budget is proved too small and a schedule of the least
  /// possible peak is known.
  bool cannot_improve() const;
  /// Returns whether the search can end. This is so if cannot_improve() holds. With SolveOptions::peak_alone it is also
  /// so if the schedule is within the budget or, without a budget, optimal().
  bool done() const;
  const core::Schedule& schedule() const { return schedule_; }
  std::int64_t peak() const { return peak_; }
  std::int64_t cost() const { return cost_; }
  std::int64_t least_peak() const;  ///< lowest peak of all schedules found, in bytes; 0 before the first offer
  const Scope& scope() const { return scope_; }
  /// Returns the proved lower bound on the peak within the scope, in bytes.
  std::int64_t lower_bound() const { return peak_bound_.value; }
  /// Raises the lower bound on the peak to `peak` bytes, which must be proved for every schedule within the scope.
  void raise_lower_bound(std::int64_t peak) { raise_peak_bound({peak, scope_}); }
  /// Replaces the bound on the peak by `bound` if `bound` is higher and holds within the scope.
  void raise_peak_bound(const Bound& bound) { raise(peak_bound_, bound); }
  /// Replaces the bound on the cost of the schedules within the budget if `bound` is higher and holds within the scope.
  void raise_cost_bound(const Bound& bound) { raise(cost_bound_, bound); }
  /// Returns whether the budget is below the lower bound on the peak. If so, no schedule is within the budget.
  bool proved_infeasible() const;

  /// Returns the solver's answer: the best schedule, the bounds, and the status that follows from them.
  Solution finish(bool timed_out) const;

 private:
  bool affordable(std::int64_t cost) const;
  bool better(std::int64_t peak, std::int64_t cost) const;
  void raise(Bound& known, const Bound& bound) const;

  const core::Graph& graph_;
  const SolveOptions& options_;
  const Scope scope_;
  const core::Stopwatch& watch_;
  core::Evaluator evaluator_;
  core::Schedule schedule_;
  Front<> tradeoffs_;  ///< peaks and costs of the schedules found
  bool any_ = false;
  std::int64_t peak_ = 0, cost_ = 0;
  Bound peak_bound_, cost_bound_;
  double best_seconds_ = 0;
};

}  // namespace cairn::solvers
