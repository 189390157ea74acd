#pragma once

#include <cstdint>
#include <optional>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/remat/bound/cut/moment_cut.h"

namespace cairn::solvers::offloading {

/// Makes a schedule from the minimum cut that bounds the makespan from below (cut_bound()). The cut belongs to one
/// moment, the first run of some node, and decides about each value that is needed after this moment. A value that the
/// cut holds stays on the device. A value that the cut moves is evicted before the moment and fetched after it. All
/// other values are computed again after the moment. Evicts are copied in the order in which their values are made, as
/// early as possible, and fetches as late as possible. The schedule may exceed the budgets, because the cut does not
/// consider other moments. Returns nothing if no moment needs more memory than the budget, or if the watch expires. The
/// options must have a link.
std::optional<core::Schedule> cut_start(const core::Graph& graph, const MomentCutOptions& options,
                                        core::Stopwatch& watch);

}  // namespace cairn::solvers::offloading
