#pragma once

#include "solvers/incumbent.h"
#include "solvers/limit.h"

namespace cairn::solvers {

/// The exact search on the whole graph below the incumbent's peak: offers what it finds, raises the lower bound.
void exact_search(const core::Graph& graph, Incumbent& incumbent, std::int64_t memory_bytes, Stopwatch& watch);

}  // namespace cairn::solvers
