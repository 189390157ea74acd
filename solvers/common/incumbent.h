#pragma once

#include <cstdint>
#include <map>

#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Whether planners take a schedule: they add up what all its steps make, in 64 bits. The baseline is for them to
/// refuse. O(T).
bool can_be_planned(const core::Graph& graph, const core::Schedule& schedule);

/// The best schedule a solver has met so far within its scope, by the order that SolveOptions defines: within the
/// budget the cheapest (then the lower peak), else the lowest peak (then the cheaper); without a budget the latter
/// alone, of those that cost no more than options.max_cost where there are any.
class Incumbent {
 public:
  /// Options and watch must outlive it; the watch's time is what best_seconds and progress report. `own` is where the
  /// solver looks, if that is less than what is asked for: scope() is what both have in common. Offers options.start,
  /// where there is one within that.
  Incumbent(const core::Graph& graph, const SolveOptions& options, const core::Stopwatch& watch,
            const Scope& own = kAnySchedule);

  /// Drops what nothing reads and pinned nodes that run again, evaluates, and keeps the schedule if it is the best
  /// within the scope and can be planned. Returns its measures. Throws std::logic_error on an invalid schedule: that is
  /// a solver's bug. O(T + sum of in-degrees).
  core::Evaluation offer(const core::Schedule& schedule);

  /// Takes note of what another solver met within the scope.
  void note(const Tradeoff& tradeoff);

  /// True once a schedule within the budget is known; without one, of those that may be that costly (always after the
  /// first offer, where costs are not limited either).
  bool within_budget() const;
  /// The peak is within the budget, or there is none.
  bool fits(std::int64_t peak) const;
  /// Within the budget none is cheaper; without one none has a lower peak. Proved by the bounds.
  bool optimal() const;
  /// The same, and without a budget none of this peak is cheaper; or the budget is too small, and the least that is not
  /// is known: there is nothing left to look for.
  bool cannot_improve() const;
  /// That, or what is asked for is found (SolveOptions::peak_alone).
  bool done() const;
  const core::Schedule& schedule() const { return schedule_; }
  std::int64_t peak() const { return peak_; }
  std::int64_t cost() const { return cost_; }
  std::int64_t least_peak() const;  ///< lowest peak met, 0 before the first
  const Scope& scope() const { return scope_; }
  std::int64_t lower_bound() const { return peak_bound_.value; }  ///< bytes: of the peak within the scope
  /// What was proved of every schedule within the scope.
  void raise_lower_bound(std::int64_t peak) { raise_peak_bound({peak, scope_}); }
  /// Take over bounds that hold within the scope, where they are better; ignore others.
  void raise_peak_bound(const Bound& bound) { raise(peak_bound_, bound); }
  /// Under a budget: of the schedules within it.
  void raise_cost_bound(const Bound& bound) { raise(cost_bound_, bound); }
  /// The budget is below the lower bound: no schedule exists.
  bool proved_infeasible() const;

  /// The result, with its status.
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
  std::map<std::int64_t, std::int64_t> tradeoffs_;  ///< peak to cost; costs fall as peaks rise
  bool any_ = false;
  std::int64_t peak_ = 0, cost_ = 0;
  Bound peak_bound_, cost_bound_;
  double best_seconds_ = 0;
};

}  // namespace cairn::solvers
