#pragma once

#include <span>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

/// Finds schedules under a budget by Lagrangian relaxation. Every byte held during a step of the given order has a
/// price, and for every use of a value the cheaper way is chosen: to hold it since its last use, or to make it again
/// together with the inputs that are missing. Prices of steps rise where memory exceeds the budget and fall where it
/// does not; each round takes all decisions again. Offers the schedules of least cost within the budget, or of least
/// peak; returns whether one was within the budget. First runs follow `order`, a topological order. Deterministic for a
/// work limit. O(n + sum of in-degrees over all steps) a round, plus the time of recomputations that are tried and
/// given up.
bool offer_priced(const core::Graph& graph, std::span<const core::NodeId> order, std::int64_t budget,
                  Incumbent& incumbent, core::Stopwatch& watch);

}  // namespace cairn::solvers
