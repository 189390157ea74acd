#pragma once

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

/// Ruin and recreate around the incumbent until the watch expires or `rounds` bring nothing: evict to a tighter budget,
/// then retain up to the real one. Needs a budget or takes the incumbent's peak as one. Deterministic for a seed and a
/// work limit.
void refine(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent, core::Stopwatch& watch,
            int rounds);

}  // namespace cairn::solvers
