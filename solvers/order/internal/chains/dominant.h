#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "cairn/solvers/order/internal/reduction/step_graph.h"

namespace cairn::solvers {

/// Returns an order of least peak of the steps in `to` that are not in `from`, or nothing if the oracle gives up.
using PeakOracle = std::function<std::optional<std::vector<StepId>>(const StepGraph&, const Cut& from, const Cut& to)>;

/// Finds a dominant order of the steps in `to` that are not in `from`, by Algorithm 1 of Jin et al. (FINDSCHEDULE). An
/// order is dominant if its memory profile dominates those of all other orders (core/dominance.h). No cut between
/// `from` and `to` may have less memory than `from`. For each segment of the result, i.e. each piece of its memory
/// profile that runs without interruption, calls the oracle once and finds one cut of least memory. Returns nothing if
/// the oracle gave up.
std::optional<std::vector<StepId>> find_schedule(const StepGraph& graph, const Cut& from, const Cut& to,
                                                 const PeakOracle& oracle);

/// Finds a dominant order of all steps by Algorithm 2 of Jin et al. (FINDSCHEDULEGENERAL, Theorem 3.14). Divides the
/// graph at a cut of least memory. Runs Algorithm 1 forwards on the part after this cut, and backwards on the part
/// before it. Returns nothing if the oracle gave up.
std::optional<std::vector<StepId>> find_schedule_general(const StepGraph& graph, const PeakOracle& oracle);

}  // namespace cairn::solvers
