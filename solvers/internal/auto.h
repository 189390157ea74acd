#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Finds a schedule with several solvers and a search. Returns the cheapest schedule found within the budget or,
/// without a budget, the schedule of least peak. First runs every solver that has a turn (AutoTurn in registry.h), each
/// with a part of the limit. Afterwards starts search() of remat/anneal/search.h from the schedules that these solvers
/// found. At the same time, cost_bound() computes a lower bound on the cost. If the scope has OrderRule::stages or
/// allows no recomputation, search() cannot be used. Instead, the solvers with AutoTurn::rest get the remaining time
/// and work.
Solution auto_remat(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
