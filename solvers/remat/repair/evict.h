#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

/// Undoes what retain_where_it_fits() does: while the peak exceeds `budget`, values that lie unused across the worst
/// step are evicted there and computed again right before their next use, together with those of their inputs that are
/// no longer in memory; the cheapest a byte first, randomised by `noise_seed` unless that is 0. True if the schedule is
/// within the budget then; else it is that of the lowest peak that was met. A node that stands in it `max_occurrences`
/// times (0: any) is not chosen to run again, though two uses may have it once each. All occurrences must be needed. At
/// most a few T rounds, each O(T) and what it inserts and drops.
bool evict_until_it_fits(const core::Graph& graph, core::EditableSchedule& schedule, std::int64_t budget,
                         std::uint64_t noise_seed, core::Stopwatch& watch, std::int32_t max_occurrences = 0);

/// Where nothing that was offered is within the budget: evicts from the best, the schedule of lowest peak, until it is,
/// and offers that, then what retain_where_it_fits() makes of it if `retain` is set.
void bring_within_budget(const core::Graph& graph, std::int64_t budget, bool retain, Incumbent& incumbent,
                         core::Stopwatch& watch);

}  // namespace cairn::solvers
