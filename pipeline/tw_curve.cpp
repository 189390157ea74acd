#include "cairn/pipeline/support/tw_curve.h"

#include <fmt/format.h>

#include <span>

#include "cairn/core/formats/files.h"

namespace cairn::pipeline {

std::string tw_curve_csv(const std::vector<solvers::TwPoint>& points) {
  std::string csv = "k,length,steps,peak_bytes,cost,retained_steps,retained_cost\n";
  for (const solvers::TwPoint& point : points) {
    csv += fmt::format("{},{},", point.k, point.length);
    csv += point.steps > 0 ? fmt::format("{},{},{},", point.steps, point.peak, point.cost) : ",,,";
    csv += point.retained_steps > 0 ? fmt::format("{},{}\n", point.retained_steps, point.retained_cost) : ",\n";
  }
  return csv;
}

solvers::TwPoint stream_tw_schedule(const core::Graph& graph, const solvers::TwRematOptions& options,
                                    const std::string& path) {
  core::ScheduleWriter file(path, graph, "tw");
  const solvers::TwPoint point =
      solvers::stream_tw_remat(graph, options, [&](std::span<const core::NodeId> steps) { file.write(steps); });
  file.commit(point.peak, point.cost);
  return point;
}

}  // namespace cairn::pipeline
