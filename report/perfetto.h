#pragma once

#include <span>
#include <string>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"

namespace cairn::report {

/// A schedule that the trace shows.
struct TraceRun {
  const core::Schedule* schedule = nullptr;
  const core::Plan* plan = nullptr;  ///< nullptr: the trace shows neither the arena's bytes nor offsets
  std::span<const double> op_ns;     ///< time of each step in ns; empty: the nodes' costs are used
};
/// Writes a Chrome/Perfetto trace as JSON. The trace contains:
/// - the steps of the schedule and, if given, of the baseline, side by side on the same clock;
/// - counters of live bytes and arena bytes for both;
/// - an arrow (flow) from the first run of a node to each recomputation;
/// - if the graph knows a link to host memory and the schedule has transfers: two tracks of copies, arrows from each
///   copy to the host to its copies back to the device, and a counter of the bytes on the host. Steps then begin after
///   the copies for which they wait (core::timeline()). If the times of steps were measured (`op_ns`), copies are left
///   out, because their times are not known;
/// - the largest tensors as slices from the step that makes them to the last step that reads them, in tracks by kind.
///
/// Throws InputError on an invalid schedule. O((T + edges) log T) for T steps.
std::string perfetto_trace(const core::Graph& graph, const TraceRun& schedule, const TraceRun& baseline = {});

}  // namespace cairn::report
