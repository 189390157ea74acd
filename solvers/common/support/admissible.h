#pragma once

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/bound.h"

namespace cairn::solvers {

/// Returns whether a search in `scope` may return the schedule, which must be valid. The scope must contain the
/// schedule. All values that the schedule moves to the host must be transferable() (transferable.h), and the values on
/// the host must at no time take more bytes than the budget of the graph's host_memory(). If the graph has no
/// host_memory(), the schedule must move no values. Searches call this function for a schedule that they are given to
/// start from, or after they changed a schedule's steps. O(T) for T steps, plus an evaluation if there are transfers.
bool admissible(const core::Graph& graph, const Scope& scope, const core::Schedule& schedule);

}  // namespace cairn::solvers
