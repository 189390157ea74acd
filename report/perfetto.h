#pragma once

#include <span>
#include <string>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"

namespace cairn::report {

/// A schedule in a trace.
struct TraceRun {
  const core::Schedule* schedule = nullptr;
  const core::Plan* plan = nullptr;  ///< nullptr: no counter of its arena, no offsets
  std::span<const double> op_ns;     ///< time of each step; empty: the nodes' costs, read as ns
};
/// Writes a Chrome/Perfetto trace as JSON. The trace has the schedule's steps and, where it is given, the baseline's
/// beside them on the same clock; counters of live and arena bytes of both; a flow from the first run of a node to each
/// recomputation; and the largest tensors as slices from the step that makes them to their last read, in tracks by
/// kind. Throws InputError on an invalid schedule. O((T + edges) log T).
std::string perfetto_trace(const core::Graph& graph, const TraceRun& schedule, const TraceRun& baseline = {});

}  // namespace cairn::report
