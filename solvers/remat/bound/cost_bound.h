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
  std::int64_t budget = 0;            ///< largest peak of the schedules, in bytes
  OrderRule order = OrderRule::free;  ///< order rule of the schedules; a stricter rule may give a higher bound
  core::Limit limit;
  /// Cost of a known schedule within the budget; kNoneKnown: none is known. Not owned; can be null. Other threads can
  /// lower it while cost_bound() runs. A node counts as run once if a second run would reach this cost.
  const std::atomic<std::int64_t>* known_cost = nullptr;
  static constexpr std::int64_t kNoneKnown = std::numeric_limits<std::int64_t>::max();
  /// Called on the caller's thread with the new bound, in units of cost, whenever the bound rises.
  std::function<void(std::int64_t)> raised;
  /// Called with valid schedules within the budget that the search finds. They can have any cost.
  std::function<void(const core::Schedule&)> found;
  bool engine = true;  ///< whether HiGHS may be used if it is installed
  /// Largest number of bytes for the relaxation. If the relaxation needs more, a coarser one is used.
  std::int64_t memory_bytes = std::int64_t{2} << 30;
};

struct CostBound {
  std::int64_t value = 0;  ///< lower bound: no schedule within the budget costs less; at most known_cost
  /// Whether it is proved that no schedule is within the budget. If so, `value` has no meaning.
  bool infeasible = false;
  /// Whether the relaxation was solved completely. If so, more time does not raise the bound.
  bool exhausted = false;
  std::int64_t work = 0;  ///< work done in node visits, the unit of core::Limit::work
};

/// Computes a lower bound on the cost of every schedule within the budget that follows the order rule, with any number
/// of recomputations.
///
/// A chain is a path of the graph with the most nodes or, if the order rule is not `free`, the whole input order. The
/// first runs of the chain's nodes divide a schedule into stages. The relaxation considers which nodes run in each
/// stage and which values are in memory during these first runs. docs/remat/bound.md lists the constraints of the
/// relaxation and says why every schedule meets them. The relaxation is bounded in three steps:
/// - Subgradient steps on memory prices bound the linear relaxation, each in near-linear time. The resulting bound is
/// computed again exactly in integers (chain_prices.h).
/// - For up to 5,000 nodes, a search through the stages follows, which these prices guide (chain_search.h).
/// - If HiGHS is installed, it solves the integer program in the remaining time (chain_program.h).
///
/// For large graphs, the chain has fewer nodes than the path. Uses one thread. Ends at the limit, or when the bound
/// reaches the known cost.
CostBound cost_bound(const core::Graph& graph, const CostBoundOptions& options);

}  // namespace cairn::solvers
