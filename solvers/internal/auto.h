#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Finds the cheapest schedule within the budget or, without a budget, the schedule of least peak. If there is a
/// budget, first calls offer_cut() (remat/bound/cut/offer_cut.h), which finds a schedule and bounds from minimum cuts
/// of the graph. Then calls every solver that has a turn (AutoTurn in registry.h), each with a part of the limit.
/// Afterwards calls search() (remat/anneal/search.h), which starts from the schedules that these solvers found. At the
/// same time, cost_bound() computes a lower bound on the cost. If the scope has OrderRule::stages or allows no
/// recomputation, search() cannot be used, and the solvers with AutoTurn::rest get the remaining time and work instead.
Solution auto_remat(const core::Graph& graph, const SolveOptions& options);

}  // namespace cairn::solvers
