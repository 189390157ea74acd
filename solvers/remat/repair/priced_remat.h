#pragma once

#include <span>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

/// Finds schedules within a budget by Lagrangian relaxation. Every byte held during a step of the given order has a
/// price. For every use of a value there are two ways: to hold the value since its last use, or to make it again
/// together with the inputs that are missing. The cheaper way is chosen. Each round makes all these choices anew. After
/// a round, the price of a step rises if its memory exceeds the budget, and falls otherwise. Offers the schedules of
/// least cost within the budget. If no schedule is within the budget, offers those of least peak. Returns whether a
/// schedule was within the budget. First runs follow `order`, which must be a topological order. Deterministic for a
/// work limit. Each round takes O(n + sum of in-degrees over all steps), plus the time for recomputations that are
/// tried and given up.
bool offer_priced(const core::Graph& graph, std::span<const core::NodeId> order, std::int64_t budget,
                  Incumbent& incumbent, core::Stopwatch& watch);

}  // namespace cairn::solvers
