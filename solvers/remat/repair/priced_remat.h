#pragma once

#include <span>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/support/incumbent.h"

namespace cairn::solvers {

/// Finds schedules within a budget by Lagrangian relaxation: instead of the budget, each step has a price for every
/// byte in memory. `order` must be a topological order of all nodes. The nodes run for the first time in this order,
/// and each first run has a price. In each round, one schedule is made. For every use of a value, the round either
/// holds the value in memory since its last use or computes the value again, whichever is cheaper at the current
/// prices. To compute a value again, inputs that are not in memory must also be computed again. After a round, the
/// price of a first run rises if the memory at this step exceeds the budget, and falls otherwise.
///
/// Offers to the incumbent the cheapest schedule found within the budget or, if none was found, the schedule of lowest
/// peak. Returns whether a schedule was within the budget. Deterministic for a work limit. A round takes O(n + sum of
/// in-degrees over all steps) time for n nodes, plus the time for recomputations that are considered but not chosen.
bool offer_priced(const core::Graph& graph, std::span<const core::NodeId> order, std::int64_t budget,
                  Incumbent& incumbent, core::Stopwatch& watch);

}  // namespace cairn::solvers
