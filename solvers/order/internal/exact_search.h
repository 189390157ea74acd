#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/common/incumbent.h"
#include "cairn/solvers/order/internal/step_graph.h"

namespace cairn::solvers {

/// The exact search on all that is to be ordered, below the incumbent's peak. Raises its lower bound, and calls found()
/// with an order that is better, if there is one, before.
void exact_search(const StepGraph& steps, Incumbent& incumbent, std::int64_t memory_bytes, core::Stopwatch& watch,
                  const std::function<void(const std::vector<StepId>&)>& found);
/// The same on the whole graph: what is found is offered.
void exact_search(const core::Graph& graph, Incumbent& incumbent, std::int64_t memory_bytes, core::Stopwatch& watch);

}  // namespace cairn::solvers
