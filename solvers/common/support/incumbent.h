#pragma once

#include <cstdint>

#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/common/support/front.h"

namespace cairn::solvers {

/// Returns whether planners accept the schedule. A planner adds up the sizes of all buffers in a 64-bit integer, which
/// a long schedule could overflow. Returns true without a check if the schedule has at most as many steps as the graph
/// has nodes, because planners themselves refuse a graph that is too large. O(T) for T steps.
bool can_be_planned(const core::Graph& graph, const core::Schedule& schedule);

/// Holds the best schedule that a solver has found so far within a scope. The options decide which schedule is best:
/// - With a budget, it is the cheapest schedule within the budget or, among equal costs, the one of lower peak. While
/// no schedule within the budget is known, it is the schedule of lowest peak or, among equal peaks, the cheaper one.
/// - Without a budget, it is the schedule of lowest peak or, among equal peaks, the cheaper one. Schedules that cost at
/// most options.max_cost are preferred to all others.
class Incumbent {
 public:
  /// Starts with options.start if that schedule is in scope(), the intersection of options.scope and `own`. `own` is
  /// the scope in which the solver searches. Reported times are read from `watch`. All arguments but `own` must outlive
  /// the object.
  Incumbent(const core::Graph& graph, const SolveOptions& options, const core::Stopwatch& watch,
            const Scope& own = kAnySchedule);

  /// Removes steps whose values no step reads, and repeated runs of pinned nodes. Evaluates the resulting schedule, and
  /// keeps it if it is in the scope, can be planned and is better than the best so far. Returns its measures. Throws
  /// std::logic_error if the schedule is invalid, which is a bug of the solver. O(T + sum of in-degrees) for T steps.
  core::Evaluation offer(const core::Schedule& schedule);

  /// Records the peak and cost of a schedule that another solver found, without the schedule. The schedule must be in
  /// scope().
  void note(const Tradeoff& tradeoff);

  /// Returns whether a schedule within the budget is known. Without a budget, returns whether a schedule that costs at
  /// most options.max_cost is known. Without a budget and a max_cost, returns whether any schedule is known.
  bool within_budget() const;
  /// Returns whether `peak` is within the budget. Always true if there is no budget.
  bool fits(std::int64_t peak) const;
  /// Returns whether the bounds prove that no schedule within the budget is cheaper than schedule(). Without a budget,
  /// returns whether they prove that no schedule has a lower peak.
  bool optimal() const;
  /// Returns whether further search cannot find anything better. This is so in two cases:
  /// - The schedule is optimal(), and the bounds prove that no schedule costs less.
  /// - The budget is proved to be too small, and a schedule of the least possible peak is known.
  bool cannot_improve() const;
  /// Returns whether the search can end. It can if cannot_improve() is true. With SolveOptions::peak_alone, it can also
  /// end if the schedule is within the budget or, without a budget, if the schedule is optimal().
  bool done() const;
  const core::Schedule& schedule() const { return schedule_; }
  std::int64_t peak() const { return peak_; }
  std::int64_t cost() const { return cost_; }
  std::int64_t least_peak() const;  ///< lowest peak of all schedules found, in bytes; 0 before the first offer
  const Scope& scope() const { return scope_; }
  std::int64_t lower_bound() const { return peak_bound_.value; }
  /// Raises the lower bound on the peak to `peak` bytes. The bound must be proved for all schedules in scope().
  void raise_lower_bound(std::int64_t peak) { raise_peak_bound({peak, scope_}); }
  /// Replaces the lower bound on the peak by `bound`, if `bound` is higher and holds for all schedules in scope().
  void raise_peak_bound(const Bound& bound) { raise(peak_bound_, bound); }
  /// Replaces the lower bound on the cost of the schedules within the budget by `bound`, if `bound` is higher and holds
  /// for all schedules in scope().
  void raise_cost_bound(const Bound& bound) { raise(cost_bound_, bound); }
  /// Returns whether the budget is below the lower bound on the peak, which proves that no schedule is within the
  /// budget.
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
