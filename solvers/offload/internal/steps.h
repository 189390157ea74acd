#pragma once

#include <cstdint>
#include <optional>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/core/support/random.h"

namespace cairn::solvers::offloading {

/// Returns a schedule in which one recomputation is dropped, or in which the value of one fetch is recomputed instead.
/// Its steps are valid. Its transfers are those of `from` with their steps renumbered, but some of them may not fit the
/// new steps; State::assign() drops these. Returns nothing if the random choice leads to no such change. `most` is the
/// largest number of runs of one node, 0 for any. O(steps + transfers + inputs of all steps).
std::optional<core::Schedule> change_steps(const core::Graph& graph, const core::Schedule& from, core::Random& random,
                                           std::int32_t most);

}  // namespace cairn::solvers::offloading
