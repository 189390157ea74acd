#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

/// Adds recomputations, which is the inverse of retain_where_it_fits(). While the peak exceeds `budget`, evicts a value
/// that is in memory at the step of highest memory but not read around that step. The value is computed again right
/// before its next use, together with its inputs that are no longer in memory. Values whose recomputation costs least
/// for each byte are evicted first. A `noise_seed` other than 0 randomises this order. Returns true if the schedule is
/// within the budget at the end. Otherwise the schedule becomes the one of lowest peak that was reached. A node that
/// already runs `max_occurrences` times (0: any number) is not chosen to run again. It can still exceed this number by
/// one if it is recomputed for two uses at once. All occurrences must be needed. For a schedule of T steps, the number
/// of rounds is at most a small multiple of T. A round takes O(T), plus the steps that it inserts and drops.
bool evict_until_it_fits(const core::Graph& graph, core::EditableSchedule& schedule, std::int64_t budget,
                         std::uint64_t noise_seed, core::Stopwatch& watch, std::int32_t max_occurrences = 0);

/// Evicts values from the best schedule until it is within the budget. Does nothing if a schedule within the budget is
/// already known. Otherwise the best schedule is that of lowest peak. Offers the result. If `retain`, also offers the
/// result of retain_where_it_fits().
void bring_within_budget(const core::Graph& graph, std::int64_t budget, bool retain, Incumbent& incumbent,
                         core::Stopwatch& watch);

}  // namespace cairn::solvers
