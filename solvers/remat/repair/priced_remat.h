#pragma once

#include <span>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

/// Finds schedules within a budget by Lagrangian relaxation, which replaces the budget by prices. The steps of `order`,
/// which must be topological, are the first runs of all nodes. Each of them has a price for every byte held in memory.
/// A round makes a schedule: for every use of a value, it holds the value since its last use or makes it again,
/// whichever is cheaper. Making it again includes the inputs that are missing. After a round, the price of a step rises
/// if its memory exceeds the budget, and falls otherwise.
///
/// Offers the cheapest schedule within the budget that was found. If there is none, offers the one of lowest peak.
/// Returns whether a schedule was within the budget. Deterministic for a work limit. A round takes O(n + sum of
/// in-degrees over all steps) time, plus the time for recomputations that are considered but not chosen.
bool offer_priced(const core::Graph& graph, std::span<const core::NodeId> order, std::int64_t budget,
                  Incumbent& incumbent, core::Stopwatch& watch);

}  // namespace cairn::solvers
