#pragma once

#include <cstdint>
#include <functional>

#include "cairn/core/limit.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/offload/internal/state.h"

namespace cairn::solvers::offloading {

/// Improves the transfers of a state that fits by simulated annealing. A move changes the times of copies, mostly of
/// those that steps wait for, and adds or drops transfers. Whatever a move makes exceed the budgets, further transfers
/// repair. Ends when the limit of `watch` is reached, when nothing waits, or when the makespan is `enough`. Afterwards,
/// the state is the best one found: of least makespan, then of least time of copies.
void improve(State& state, core::Stopwatch& watch, core::Random& random, std::int64_t enough);

}  // namespace cairn::solvers::offloading
