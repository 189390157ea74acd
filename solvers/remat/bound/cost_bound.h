#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/bound.h"

namespace cairn::solvers {

struct CostBoundOptions {
  std::int64_t budget = 0;            ///< bytes of peak
  OrderRule order = OrderRule::free;  ///< for the narrower classes the bound may be higher
  core::Limit limit;
  /// Cost of a schedule within the budget that is known, the largest number where none is; others may lower it while
  /// the bound is being raised. Nodes too expensive to run again below it are known to run once. Not owned; may be
  /// null.
  const std::atomic<std::int64_t>* known_cost = nullptr;
  static constexpr std::int64_t kNoneKnown = std::numeric_limits<std::int64_t>::max();
  /// Called with the new bound whenever it rises, in units of cost; on the caller's thread.
  std::function<void(std::int64_t)> raised;
  /// Called with valid schedules within the budget that come up on the way, whatever their cost.
  std::function<void(const core::Schedule&)> found;
  bool engine = true;                                 ///< whether HiGHS may be used where it is installed
  std::int64_t memory_bytes = std::int64_t{2} << 30;  ///< for the relaxation; beyond it a coarser one is taken
};

struct CostBound {
  std::int64_t value = 0;   ///< no schedule within the budget costs less; never above known_cost
  bool infeasible = false;  ///< proved: no schedule is within the budget; `value` then means nothing
  bool exhausted = false;   ///< the relaxation was solved to its end: more time brings nothing
  std::int64_t work = 0;    ///< node visits, the unit of core::Limit::work
};

/// A lower bound on the cost of every schedule within the budget, in whatever order and with any number of
/// recomputations.
///
/// First runs of the nodes along a longest path (in the classes that keep the input order: along that order) split a
/// schedule into stages. What runs in each stage and what is in memory during these first runs alone is a relaxation of
/// all schedules; docs/remat/bound.md says of which constraints it consists and why they hold. Its linear relaxation is
/// bounded by subgradient steps, each near-linear in the size, exactly in whole numbers at last; with that as a guide
/// the stages are searched (up to 5,000 nodes); where HiGHS is installed the rest is its integer program. Too large
/// graphs get a coarser chain. One thread; ends at the limit, or where bound and known cost meet.
CostBound cost_bound(const core::Graph& graph, const CostBoundOptions& options);

}  // namespace cairn::solvers
