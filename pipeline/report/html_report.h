#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"

namespace cairn::pipeline {

/// Memory over time of one schedule: `bytes[i]` are in memory from `time[i]` to `time[i + 1]` (the last one to the
/// end).
struct MemoryCurve {
  std::vector<double> time;  ///< ascending, in the unit of the graph's costs
  std::vector<std::int64_t> bytes;
};
/// Two entries a step, during and after it. Time is the cost so far, or the step where the graph has no costs.
/// O(T + sum of in-degrees). Throws InputError on an invalid schedule.
MemoryCurve memory_curve(const core::Graph& graph, const core::Schedule& schedule);

/// One rectangle of the address x time picture.
struct ReportBuffer {
  enum class Kind : std::uint8_t { forward, backward, recomputed, kept, scratch };
  std::string name;
  Kind kind = Kind::forward;
  std::int64_t first = 0, last = 0;  ///< steps, both inclusive
  std::int64_t offset = 0, size = 0;
};
/// The buffers of a plan of `schedule`, in the plan's order. Throws InputError on an invalid schedule.
std::vector<ReportBuffer> report_buffers(const core::Graph& graph, const core::Schedule& schedule,
                                         const core::Plan& plan);

/// What is known of one execution; what is not is left empty and shows as a dash.
struct ReportRun {
  std::int64_t predicted_peak_bytes = 0;
  std::int64_t cost = 0;
  std::optional<std::int64_t> planned_bytes;
  std::optional<std::int64_t> measured_peak_bytes;
  std::optional<double> seconds;
  std::int64_t steps = 0;
  std::int64_t recomputed = 0;  ///< steps whose node had run before
  MemoryCurve memory;
};

/// Everything the report shows. Empty curves, buffers and fronts leave their picture out.
struct ReportData {
  std::string graph;    ///< its name
  std::string solver;   ///< its name
  std::string device;   ///< what it ran on; may be empty
  std::string version;  ///< of Cairn; may be empty
  std::int64_t nodes = 0, edges = 0;
  std::int64_t resident_bytes = 0;  ///< beside the budget
  std::optional<std::int64_t> budget_bytes;
  std::optional<bool> identical;   ///< every output, as `compared` says, where both were executed
  std::string compared;            ///< what was compared, in words: outputs bit by bit, digests
  std::string cost_unit;           ///< of every cost, as "ns" or "cost units"
  std::vector<std::string> notes;  ///< what must be said of the run, each in a line: synthetic kernels, ...
  ReportRun baseline, scheduled;

  std::vector<ReportBuffer>
      buffers;  ///< of the schedule's plan; beyond 6000, the largest by bytes x steps, the others in grey
  std::int64_t arena_bytes = 0;  ///< height of the plan

  struct ParetoPoint {
    std::int64_t peak_bytes = 0;
    std::int64_t cost = 0;
  };
  std::vector<ParetoPoint> pareto;  ///< other schedules known, in any order
};

/// One self-contained HTML page: no network, light and dark. Curves are thinned to a few thousand points; every peak
/// stays exact.
std::string html_report(const ReportData& data);

/// What the page of a plan shows beside its buffers.
struct PlanReport {
  std::string name;     ///< of the graph or the file
  std::string version;  ///< of Cairn; may be empty
  std::string status;   ///< how good the plan is, in a few words
  core::Plan plan;
  std::int64_t proved_bytes = 0;  ///< no plan is lower
  std::optional<std::int64_t> capacity_bytes;
  std::vector<core::AddressRange> forbidden;
  std::vector<std::int32_t> conflict;  ///< places in plan.buffers of a set that does not fit, to be highlighted
  double seconds = 0;                  ///< of the search
};

/// One self-contained HTML page of a plan of free-standing buffers: the load over time, with its tight sections (where
/// it is largest) marked, and address over time, coloured by prefix of id or by size. `plan.buffers[i]` is specs[i],
/// with `last` = upper - 1. Pages have a few megabytes at most, whatever the number of buffers.
std::string plan_report(const PlanReport& report, const std::vector<core::BufferSpec>& specs);
/// The same of a plan of `schedule`, coloured by kind of buffer. Throws InputError on an invalid schedule.
std::string plan_report(const PlanReport& report, const core::Graph& graph, const core::Schedule& schedule);

}  // namespace cairn::pipeline
