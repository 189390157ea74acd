#pragma once

#include "cairn/core/limit.h"
#include "cairn/solvers/offload/internal/state.h"

namespace cairn::solvers::offloading {

/// Adds transfers to the state until it fits into its budgets. Goes through the moments in order. At the first one with
/// too many bytes, it offloads the value that is read again last, as Belady's rule does for caches, among those that a
/// copy on an idle link takes away without any wait. If there is none, it takes the value that causes the least wait.
/// Evicts are copied as early as the link is free, and fetches as late as possible. Returns whether the state fits now;
/// if not, the steps cannot be brought within the budgets by this rule. O(v * gaps) for v violations.
bool construct(State& state, core::Stopwatch& watch);

/// Moves the ends of evicts later and the starts of fetches earlier as long as memory allows it, for those copies that
/// steps wait for. Repeats this until the makespan stays the same. Requires that the state fits.
void relax(State& state, core::Stopwatch& watch);

}  // namespace cairn::solvers::offloading
