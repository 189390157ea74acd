#pragma once

#include <cstdint>

#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/front.h"
#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Whether planners can take the schedule: they add up the bytes that all its steps make, in 64 bits. True for every
/// schedule of at most one step a node: planners themselves refuse a baseline that is too large. O(T).
bool can_be_planned(const core::Graph& graph, const core::Schedule& schedule);

/// The best schedule within its scope that a solver has met so far. With a budget: the cheapest schedule within the
/// budget (among equally cheap ones, that of the lowest peak); if none is known, the one of the lowest peak (then the
/// cheapest). Without a budget: the one of the lowest peak (then the cheapest), among schedules that cost at most
/// options.max_cost if there are any.
class Incumbent {
 public:
  /// Starts with options.start, if that is in scope(). `own` is the scope in which the solver looks; scope() is its
  /// intersection with options.scope. Options and watch must outlive the object; best_seconds and progress report the
  /// watch's time.
  Incumbent(const core::Graph& graph, const SolveOptions& options, const core::Stopwatch& watch,
            const Scope& own = kAnySchedule);

  /// Drops steps that nothing reads and repeated runs of pinned nodes, evaluates the schedule, and keeps it if it is
  /// the best within the scope and can be planned. Returns its measures. Throws std::logic_error on an invalid
  /// schedule, which is a solver's bug. O(T + sum of in-degrees).
  core::Evaluation offer(const core::Schedule& schedule);

  /// Notes the peak and cost of a schedule within the scope that another solver met, without the schedule itself.
  void note(const Tradeoff& tradeoff);

  /// Whether a schedule within the budget is known; without a budget, whether one that costs at most options.max_cost
  /// is known (without max_cost: always after the first offer).
  bool within_budget() const;
  /// Whether the peak is within the budget, or there is no budget.
  bool fits(std::int64_t peak) const;
  /// Whether the bounds prove that no schedule within the budget is cheaper; without a budget, that none has a lower
  /// peak.
  bool optimal() const;
  /// Whether nothing is left to look for: the schedule is optimal() and its cost is proved least too, or the budget is
  /// proved too small and a schedule of the proved least peak is known.
  bool cannot_improve() const;
  /// Whether cannot_improve() holds, or the caller has what it asked for (SolveOptions::peak_alone).
  bool done() const;
  const core::Schedule& schedule() const { return schedule_; }
  std::int64_t peak() const { return peak_; }
  std::int64_t cost() const { return cost_; }
  std::int64_t least_peak() const;  ///< lowest peak of the schedules met, in bytes; 0 before the first offer
  const Scope& scope() const { return scope_; }
  /// Proved lower bound of the peak in bytes, within the scope.
  std::int64_t lower_bound() const { return peak_bound_.value; }
  /// Raises the lower bound of the peak. `peak`: proved for every schedule within the scope.
  void raise_lower_bound(std::int64_t peak) { raise_peak_bound({peak, scope_}); }
  /// Takes over a bound that holds within the scope, if it is better; ignores others.
  void raise_peak_bound(const Bound& bound) { raise(peak_bound_, bound); }
  /// Takes over a bound on the cost of the schedules within the budget, if it is better; ignores bounds that do not
  /// hold within the scope.
  void raise_cost_bound(const Bound& bound) { raise(cost_bound_, bound); }
  /// Whether the budget is below the lower bound, so that no schedule exists.
  bool proved_infeasible() const;

  /// Makes the solver's answer: the best schedule, the bounds and the status that follows from them.
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
  Front<> tradeoffs_;  ///< peaks and costs of the schedules met
  bool any_ = false;
  std::int64_t peak_ = 0, cost_ = 0;
  Bound peak_bound_, cost_bound_;
  double best_seconds_ = 0;
};

}  // namespace cairn::solvers
