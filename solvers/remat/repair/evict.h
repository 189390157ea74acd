#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/common/support/incumbent.h"

namespace cairn::solvers {

/// Adds recomputations until the peak is at most `budget` bytes. This is the inverse of retain_where_it_fits(). In each
/// round, takes the step of highest memory. Evicts values that are in memory at this step, but that the step does not
/// read, until the step is within the budget. An evicted value is computed again right before its next use, together
/// with its inputs that are no longer in memory. Values whose recomputation costs least per byte are evicted first. A
/// `noise_seed` other than 0 randomises this order.
///
/// Returns true if the schedule is within the budget at the end. Otherwise sets the schedule to the one of lowest peak
/// that was reached. A node that already runs `max_occurrences` times (0: any number) is not chosen to run again.
/// Still, a node can end up with more runs if one round recomputes it for several uses. Every step of the given
/// schedule must make a value that a later step reads or that is kept. The number of rounds is at most a small multiple
/// of T for a schedule of T steps. A round takes O(T) time, plus time proportional to the steps that it inserts and
/// drops.
bool evict_until_it_fits(const core::Graph& graph, core::EditableSchedule& schedule, std::int64_t budget,
                         std::uint64_t noise_seed, core::Stopwatch& watch, std::int32_t max_occurrences = 0);

/// Evicts values from the incumbent's schedule until it is within the budget. If this succeeds, offers the result. If
/// `retain`, also offers the result of retain_where_it_fits(). Does nothing if a schedule within the budget is already
/// known.
void bring_within_budget(const core::Graph& graph, std::int64_t budget, bool retain, Incumbent& incumbent,
                         core::Stopwatch& watch);

}  // namespace cairn::solvers
