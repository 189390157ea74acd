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
  std::int64_t budget = 0;  ///< largest peak of the schedules, in bytes
  /// order rule of the schedules; a stricter rule allows fewer schedules, which can raise the bound
  OrderRule order = OrderRule::free;
  core::Limit limit;
  /// Cost of a known schedule within the budget; kNoneKnown: none is known. Not owned; can be null. Other threads can
  /// lower it while cost_bound() runs. The bound needs to hold only for schedules that are cheaper. In such schedules,
  /// expensive nodes cannot run twice, which can raise the bound.
  const std::atomic<std::int64_t>* known_cost = nullptr;
  static constexpr std::int64_t kNoneKnown = std::numeric_limits<std::int64_t>::max();
  /// Called on the caller's thread with the new bound, in units of cost, whenever the bound rises.
  std::function<void(std::int64_t)> raised;
  /// Called with schedules that the search finds and that are within the budget. They are valid, but need not be cheap.
  std::function<void(const core::Schedule&)> found;
  bool engine = true;  ///< whether to use the external integer-program solver HiGHS if it is installed
  /// Largest memory of the relaxation (see cost_bound()) in bytes. A relaxation that would need more is replaced by a
  /// smaller one, for which nodes of the chain are left out.
  std::int64_t memory_bytes = std::int64_t{2} << 30;
};

struct CostBound {
  std::int64_t value = 0;  ///< no schedule within the budget costs less; never above known_cost
  /// Whether it is proved that no schedule is within the budget. If so, `value` has no meaning.
  bool infeasible = false;
  /// Whether the relaxation (see cost_bound()) was solved completely. If so, more time would not raise the bound.
  bool exhausted = false;
  std::int64_t work = 0;  ///< in units of core::Limit::work
};

/// Computes a lower bound on the cost of every schedule within the budget that follows the order rule, with any number
/// of recomputations. Uses one thread. Ends at the limit, or when the bound reaches the known cost.
///
/// The first bound is the bound of cut_bound() (cut/cut_bound.h), which only considers what is in memory at up to three
/// moments. A moment is the first run of a node. This bound is near the optimum if few moments need far more memory
/// than all others.
///
/// The second bound is the optimum of a relaxation. This is a simpler problem whose constraints are met by all
/// schedules that are within the budget and follow the order rule. A chain is a path of the graph with the most nodes.
/// If the order rule is not `free`, the chain is the whole input order. The first runs of the chain's nodes divide a
/// schedule into stages. The relaxation only records which nodes run in each stage, and which values are in memory
/// during these first runs. For large graphs, some nodes of the chain are left out, which gives fewer stages.
/// docs/remat/bound.md lists the constraints and says why every schedule meets them.
///
/// The optimum is bounded from below in three steps:
/// - Prices for memory give a bound on the linear relaxation. Subgradient steps improve the prices, each in near-linear
///   time. The resulting bound is computed once more, exactly in integers (stage_prices.h).
/// - For up to 5,000 nodes, a search through the stages follows, which the prices guide (stage_search.h).
/// - If HiGHS is installed, it solves the relaxation as an integer program in the remaining time (stage_program.h).
CostBound cost_bound(const core::Graph& graph, const CostBoundOptions& options);

}  // namespace cairn::solvers
