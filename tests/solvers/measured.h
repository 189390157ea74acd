#pragma once

#include <cstdint>

#include "cairn/core/profile.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests {

inline std::int64_t baseline_peak(const core::Graph& graph) {
  return core::evaluate(graph, core::baseline_schedule(graph)).peak;
}

/// Returns a random budget between the lower bound on the peak of all schedules and the peak of the input order.
inline std::int64_t any_budget(Random& random, const core::Graph& graph) {
  return random.between(core::peak_lower_bound(graph), baseline_peak(graph));
}

/// Checks by the definitions that the schedule of `solution` is valid, and that its peak and cost are those that
/// `solution` states.
template <class Answer>
void require_measured(const core::Graph& graph, const Answer& solution) {
  REQUIRE(core::reference::valid(graph, solution.schedule));
  REQUIRE(core::reference::peak(graph, solution.schedule) == solution.peak);
  REQUIRE(core::reference::cost(graph, solution.schedule) == solution.cost);
}

}  // namespace cairn::tests
