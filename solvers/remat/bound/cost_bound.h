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
  OrderRule order = OrderRule::free;  ///< order rule of the schedules; the bound may be higher for narrower rules
  core::Limit limit;
  /// Cost of a known schedule within the budget, kNoneKnown if there is none; other threads may lower it while the
  /// bound is being raised. Nodes too expensive to run again below that cost count as run once. Not owned; may be null.
  const std::atomic<std::int64_t>* known_cost = nullptr;
  static constexpr std::int64_t kNoneKnown = std::numeric_limits<std::int64_t>::max();
  /// Called on the caller's thread with the new bound, in units of cost, whenever it rises.
  std::function<void(std::int64_t)> raised;
  /// Called with valid schedules within the budget that the search meets, whatever their cost.
  std::function<void(const core::Schedule&)> found;
  bool engine = true;  ///< whether HiGHS may be used if it is installed
  /// Memory for the relaxation; if it needs more, a coarser relaxation is used.
  std::int64_t memory_bytes = std::int64_t{2} << 30;
};

struct CostBound {
  std::int64_t value = 0;   ///< lower bound: no schedule within the budget costs less; never above known_cost
  bool infeasible = false;  ///< whether it is proved that no schedule is within the budget; `value` is then meaningless
  bool exhausted = false;   ///< whether the relaxation was solved completely, so that more time brings nothing
  std::int64_t work = 0;    ///< work done in node visits, the unit of core::Limit::work
};

/// Computes a lower bound on the cost of every schedule within the budget, in any order and with any number of
/// recomputations.
///
/// First runs of the nodes along a longest path (in the classes that keep the input order: along that order) split a
/// schedule into stages. The nodes that run in each stage and the values in memory during these first runs form a
/// relaxation of all schedules; docs/remat/bound.md lists its constraints and why they hold. Its linear relaxation is
/// bounded by subgradient steps, each near-linear in the size, and finally exactly in whole numbers. With this bound as
/// a guide the stages are searched (up to 5,000 nodes); if HiGHS is installed, its integer program takes the remaining
/// time. Graphs that are too large get a coarser chain. Uses one thread; ends at the limit, or when bound and known
/// cost meet.
CostBound cost_bound(const core::Graph& graph, const CostBoundOptions& options);

}  // namespace cairn::solvers
