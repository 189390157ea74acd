#pragma once

#include <cstdint>
#include <optional>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/remat/bound/cut/moment_cut.h"

namespace cairn::solvers::offloading {

/// Returns the schedule of a minimum cut at the moment that bounds the makespan from below (cut_bound()): what the cut
/// neither holds nor moves runs again, and what it moves has left before the moment and comes back afterwards. Evicts
/// are copied in the order in which their values are made, as early as possible, and fetches as late as possible. The
/// schedule may exceed the budgets, because the cut says nothing of other moments. Returns nothing if no moment needs
/// more memory than there is, or if the watch expires. The options must have a link.
std::optional<core::Schedule> cut_start(const core::Graph& graph, const MomentCutOptions& options,
                                        core::Stopwatch& watch);

}  // namespace cairn::solvers::offloading
