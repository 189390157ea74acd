#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

/// Undoes retain_where_it_fits(): while the peak exceeds `budget`, evicts values that lie unused across the worst step
/// and computes them again right before their next use, together with their inputs that are no longer in memory. The
/// cheapest a byte goes first, randomised by `noise_seed` unless that is 0. Returns true if the schedule is then within
/// the budget; otherwise leaves the schedule of the lowest peak met. A node that runs `max_occurrences` times (0: any)
/// is not chosen to run again, though two uses may have it once each. All occurrences must be needed. At most a few T
/// rounds, each O(T) plus what it inserts and drops.
bool evict_until_it_fits(const core::Graph& graph, core::EditableSchedule& schedule, std::int64_t budget,
                         std::uint64_t noise_seed, core::Stopwatch& watch, std::int32_t max_occurrences = 0);

/// If nothing offered so far is within the budget: evicts from the best schedule, that of lowest peak, until it is, and
/// offers the result; if `retain`, also offers what retain_where_it_fits() makes of it.
void bring_within_budget(const core::Graph& graph, std::int64_t budget, bool retain, Incumbent& incumbent,
                         core::Stopwatch& watch);

}  // namespace cairn::solvers
