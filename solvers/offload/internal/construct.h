#pragma once

#include "cairn/core/limit.h"
#include "cairn/solvers/offload/internal/state.h"

namespace cairn::solvers::offloading {

/// Adds transfers to the state until it fits into its budgets. Visits the moments (each step, and the time between two
/// steps) in order. At each moment with more bytes than the budget, offloads values. Prefers values that an idle link
/// can take away and bring back without any step waiting; of these, takes the value that is read again last, as
/// Belady's rule does for caches. If there is no such value, takes the value that causes the least wait. Evicts are
/// copied as early as the link is free, and fetches as late as possible. Returns whether the state fits now. If not,
/// the watch has expired, or this rule cannot bring the steps within the budgets. Takes O(v g) time for v moments with
/// too many bytes and g gaps (ranges of steps in which a value is needed later, but not read; see state.h).
bool construct(State& state, core::Stopwatch& watch);

/// Gives more time to copies for which steps wait: evicts end later and fetches start earlier, as far as memory allows
/// it. Repeats this until the makespan no longer falls. Requires that the state fits.
void relax(State& state, core::Stopwatch& watch);

}  // namespace cairn::solvers::offloading
