#pragma once

#include <cstdint>
#include <functional>

#include "cairn/core/limit.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/offload/internal/state.h"

namespace cairn::solvers::offloading {

/// Improves the transfers of a state that fits by simulated annealing. A move changes the times of copies, mostly of
/// those that steps wait for, and adds or drops transfers. If the state exceeds the budgets after a move, further
/// transfers are added to repair this. Ends when the limit of `watch` is reached, when no step waits for a copy, or
/// when the makespan is at most `enough`. Afterwards, the state has the best transfers found: those of least makespan
/// and, among equal makespans, of least time of all copies.
void improve(State& state, core::Stopwatch& watch, core::Random& random, std::int64_t enough);

}  // namespace cairn::solvers::offloading
