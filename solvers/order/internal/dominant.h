#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "cairn/solvers/order/internal/step_graph.h"

namespace cairn::solvers {

/// A function that orders the steps of `to` that are not in `from` so that the peak is least. Returns nothing if it
/// gave up. To order the whole graph, let `from` be the empty cut and `to` the full cut.
using PeakOracle = std::function<std::optional<std::vector<StepId>>(const StepGraph&, const Cut& from, const Cut& to)>;

/// Finds an order of the steps in to \ from that dominates all other orders, by Algorithm 1 (FINDSCHEDULE). No cut
/// between `from` and `to` may have less memory than `from`. Makes one call of the oracle and finds one minimum cut for
/// each segment of the result. Returns nothing if the oracle gave up.
std::optional<std::vector<StepId>> find_schedule(const StepGraph& graph, const Cut& from, const Cut& to,
                                                 const PeakOracle& oracle);

/// Finds a dominant order of all steps by Algorithm 2 (FINDSCHEDULEGENERAL) with Theorem 3.14. Divides the graph at a
/// minimum cut. Runs Algorithm 1 forwards on the part after the cut, and backwards on the part before it. Returns
/// nothing if the oracle gave up.
std::optional<std::vector<StepId>> find_schedule_general(const StepGraph& graph, const PeakOracle& oracle);

}  // namespace cairn::solvers
