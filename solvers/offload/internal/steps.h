#pragma once

#include <cstdint>
#include <optional>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/core/support/random.h"

namespace cairn::solvers::offloading {

/// Tells which changes of the steps are allowed.
struct StepRules {
  std::int32_t max_occurrences = 0;  ///< largest number of runs of one node; 0: any number
  bool any_order = true;             ///< whether steps may move
};

/// Makes one random change to the schedule `from`: drops neighbouring recomputations, computes the value of one fetch
/// again instead of fetching it, or moves one step. The steps of the result are valid. Its transfers are those of
/// `from` with their steps renumbered. Some of them may not fit the new steps; State::assign() drops these. Returns
/// nothing if the random choice leads to no such change. O(steps + transfers + inputs of all steps).
std::optional<core::Schedule> change_steps(const core::Graph& graph, const core::Schedule& from, core::Random& random,
                                           const StepRules& rules);

}  // namespace cairn::solvers::offloading
