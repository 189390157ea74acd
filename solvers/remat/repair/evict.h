#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

/// Adds recomputations; the inverse of retain_where_it_fits(). While the peak exceeds `budget`, evicts a value that no
/// step reads around the step of highest memory. The value is computed again right before its next use, together with
/// its inputs that are no longer in memory. Values whose recomputation costs least for each byte are evicted first; a
/// `noise_seed` other than 0 randomises this order. Returns true if the schedule is within the budget at the end.
/// Otherwise, the schedule becomes the one of lowest peak that was reached. A node that runs `max_occurrences` times
/// (0: any number) is not chosen to run again. The limit can still be exceeded by one if the node is recomputed for two
/// uses at once. All occurrences must be needed. At most a few T rounds for T steps, each O(T) plus the steps that it
/// inserts and drops.
bool evict_until_it_fits(const core::Graph& graph, core::EditableSchedule& schedule, std::int64_t budget,
                         std::uint64_t noise_seed, core::Stopwatch& watch, std::int32_t max_occurrences = 0);

/// Evicts values from the best schedule until it is within the budget, if no schedule offered so far is. The best
/// schedule is then that of lowest peak. Offers the result. If `retain`, also offers the result of
/// retain_where_it_fits().
void bring_within_budget(const core::Graph& graph, std::int64_t budget, bool retain, Incumbent& incumbent,
                         core::Stopwatch& watch);

}  // namespace cairn::solvers
