#pragma once

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/bound.h"

namespace cairn::solvers {

/// Returns whether a search in `scope` may return the schedule, which must be valid: the scope contains it, all values
/// that it moves to the host are transferable(), and these take at most the host's budget. A graph without a
/// host_memory() has no room for them. Searches that are given a schedule to start from, or that change the steps of
/// one, ask this. O(T) for T steps, plus an evaluation if there are transfers.
bool admissible(const core::Graph& graph, const Scope& scope, const core::Schedule& schedule);

}  // namespace cairn::solvers
