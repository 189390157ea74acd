#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// The best schedule a solver has met so far, by the order that SolveOptions defines: within the budget the cheapest
/// (then the lower peak), else the lowest peak (then the cheaper); without a budget the latter alone.
class Incumbent {
 public:
  /// Options and watch must outlive it; the watch's time is what best_seconds and progress report.
  Incumbent(const core::Graph& graph, const SolveOptions& options, const core::Stopwatch& watch);

  /// Drops what nothing reads, evaluates, and keeps the schedule if it is the best. Returns its measures.
  /// Throws std::logic_error on an invalid schedule: that is a solver's bug. O(T + sum of in-degrees).
  core::Evaluation offer(const core::Schedule& schedule);

  /// Takes note of what another solver met.
  void note(const Tradeoff& tradeoff);

  /// True once a schedule within the budget is known (always after the first offer, without a budget).
  bool within_budget() const;
  /// The peak is within the budget, or there is none.
  bool fits(std::int64_t peak) const;
  /// True when nothing can be better: within the budget at the cost of running every node once.
  bool cannot_improve() const;
  const core::Schedule& schedule() const { return schedule_; }
  std::int64_t peak() const { return peak_; }
  std::int64_t cost() const { return cost_; }
  std::int64_t least_peak() const;  ///< lowest peak met, 0 before the first
  std::int64_t lower_bound() const { return lower_bound_; }
  /// A bound on every schedule that the solver could return.
  void raise_lower_bound(std::int64_t bound) { lower_bound_ = std::max(lower_bound_, bound); }
  /// The budget is below the lower bound: no schedule exists.
  bool proved_infeasible() const;

  /// The result, with its status.
  Solution finish(bool timed_out) const;

 private:
  bool better(std::int64_t peak, std::int64_t cost) const;

  const core::Graph& graph_;
  const SolveOptions& options_;
  const core::Stopwatch& watch_;
  core::Evaluator evaluator_;
  core::Schedule schedule_;
  std::map<std::int64_t, std::int64_t> tradeoffs_;  ///< peak to cost; costs fall as peaks rise
  bool any_ = false;
  std::int64_t peak_ = 0, cost_ = 0, lower_bound_ = 0, least_cost_ = 0;
  double best_seconds_ = 0;
};

}  // namespace cairn::solvers
