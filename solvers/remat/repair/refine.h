#pragma once

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

/// Improves the incumbent by ruin and recreate, until the watch expires or `rounds` bring nothing: evicts values to a
/// tighter budget (evict.h), then retains values up to the real one (retain.h). Without a budget, the incumbent's peak
/// is the budget. Deterministic for a seed and a work limit.
void refine(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent, core::Stopwatch& watch,
            int rounds);

}  // namespace cairn::solvers
