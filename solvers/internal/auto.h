#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Runs every solver that has a turn (AutoTurn), each with a share of the limit. Then starts the search of search.h
/// from the schedules that these solvers found. cost_bound() runs beside the search. Returns the cheapest schedule
/// within the budget or, without a budget, the schedule of least peak. The search cannot be used in scopes with stages
/// or without recomputation. In such a scope, the solvers with AutoTurn::rest get the rest of the limit instead.
Solution auto_remat(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
