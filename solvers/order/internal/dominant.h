#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "cairn/solvers/order/internal/step_graph.h"

namespace cairn::solvers {

/// A function that orders the steps of `to` that are not in `from` so that the highest memory on the way is least;
/// empty if it gave up. The whole graph is given by the empty and the full cut.
using PeakOracle = std::function<std::optional<std::vector<StepId>>(const StepGraph&, const Cut& from, const Cut& to)>;

/// Finds an order of to \ from that dominates all others by Algorithm 1 (FINDSCHEDULE), provided that no cut between
/// has less memory than `from`. Takes one call of the oracle and one minimum cut for each segment of the result. Empty
/// if the oracle gave up.
std::optional<std::vector<StepId>> find_schedule(const StepGraph& graph, const Cut& from, const Cut& to,
                                                 const PeakOracle& oracle);

/// Finds a dominant order of all steps by Algorithm 2 (FINDSCHEDULEGENERAL) with Theorem 3.14. Splits at a minimum cut,
/// and runs Algorithm 1 on the part after it and, backwards, on the part before it. Empty if the oracle gave up.
std::optional<std::vector<StepId>> find_schedule_general(const StepGraph& graph, const PeakOracle& oracle);

}  // namespace cairn::solvers
