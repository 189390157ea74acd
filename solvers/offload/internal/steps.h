#pragma once

#include <cstdint>
#include <optional>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/core/support/random.h"

namespace cairn::solvers::offloading {

/// What changes of the steps are allowed.
struct StepRules {
  std::int32_t max_occurrences = 0;  ///< largest number of runs of one node; 0: any number
  bool any_order = true;             ///< whether steps may move
};

/// Returns a schedule in which one recomputation is dropped, in which the value of one fetch is recomputed instead, or
/// in which one step has moved. Its steps are valid. Its transfers are those of `from` with their steps renumbered, but
/// some of them may not fit the new steps; State::assign() drops these. Returns nothing if the random choice leads to
/// no such change. O(steps + transfers + inputs of all steps).
std::optional<core::Schedule> change_steps(const core::Graph& graph, const core::Schedule& from, core::Random& random,
                                           const StepRules& rules);

}  // namespace cairn::solvers::offloading
