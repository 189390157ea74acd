#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

/// Adds recomputations, the inverse of retain_where_it_fits(): while the peak exceeds `budget`, evicts values that lie
/// unused across the step of highest memory and computes them again right before their next use, together with their
/// inputs that are no longer in memory. The values whose recomputation costs least a byte go first, randomised by
/// `noise_seed` unless that is 0. Returns true if the schedule is then within the budget; otherwise leaves the schedule
/// of the lowest peak met. A node that runs `max_occurrences` times (0: any) is not chosen to run again, but may run
/// once for each of two uses. All occurrences must be needed. At most a few T rounds, each O(T) plus what it inserts
/// and drops.
bool evict_until_it_fits(const core::Graph& graph, core::EditableSchedule& schedule, std::int64_t budget,
                         std::uint64_t noise_seed, core::Stopwatch& watch, std::int32_t max_occurrences = 0);

/// Evicts from the best schedule, which is that of lowest peak, until it is within the budget, if no schedule offered
/// so far is. Offers the result; if `retain`, also offers what retain_where_it_fits() makes of it.
void bring_within_budget(const core::Graph& graph, std::int64_t budget, bool retain, Incumbent& incumbent,
                         core::Stopwatch& watch);

}  // namespace cairn::solvers
