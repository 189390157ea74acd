#pragma once

#include <cstdint>
#include <optional>

#include "cairn/core/graph.h"
#include "cairn/core/link.h"
#include "cairn/solvers/remat/bound/cost_bound.h"

namespace cairn::solvers {

struct MakespanBoundOptions {
  /// The budget of the device, the order rule, the limit and further options of cost_bound(). Where these speak of the
  /// cost, the makespan is meant.
  CostBoundOptions common;
  std::optional<core::Link> link;           ///< without it, schedules have no transfers
  std::optional<std::int64_t> host_budget;  ///< largest number of bytes on the host; without it, there is no limit
};

/// Computes a lower bound on the makespan of every schedule, with any number of recomputations and transfers, that is
/// within the budgets and follows the order rule. Uses one thread. Ends at the limit, or when the bound reaches the
/// known makespan. CostBound::infeasible says that it is proved that no such schedule exists.
///
/// The bound is the largest of these four:
/// - The cost of running each node once.
/// - The bound of cut_bound(), which considers what is in memory and on the host at one moment.
/// - The optimum of a linear relaxation, as far as subgradient steps reach it. The relaxation chooses in which stages
///   nodes run, and in which stages values are held and copied; the theorem and its proof are in transfer_prices.h. The
///   relaxation knows that the link has time for a copy only while steps run or wait. So the evicts that are over
///   before some moment take no longer than the time until this moment, and the fetches that start after this moment
///   take no longer than the time from then on. Each byte for which there is no room at the peak must be recomputed or
///   moved, and both take time.
/// - The smaller of two numbers: cost_bound(), which holds for schedules without transfers, and a bound for schedules
///   with at least one transfer. If there is a transfer, some value x is made, evicted, fetched and read, one after
///   another. So the makespan is at least the cost of a path of the graph that ends with the node of x, plus twice
///   copy_cost(x), plus the cost of a reader of x (0 if x is kept). This fourth bound matters for slow links and small
///   graphs.
///
/// Without a link, or if no value can be moved, the answer is the answer of cost_bound(). If a budget or a bandwidth
/// becomes smaller, the optimum of the relaxation never falls.
CostBound makespan_bound(const core::Graph& graph, const MakespanBoundOptions& options);

}  // namespace cairn::solvers
