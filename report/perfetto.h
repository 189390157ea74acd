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
/// - the largest tensors as slices from the step that makes them to the last step that reads them, in tracks by kind.
///
/// Throws InputError on an invalid schedule. O((T + edges) log T) for T steps.
std::string perfetto_trace(const core::Graph& graph, const TraceRun& schedule, const TraceRun& baseline = {});

}  // namespace cairn::report
