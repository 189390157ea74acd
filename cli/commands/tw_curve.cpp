#include "cairn/pipeline/support/tw_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cairn/cli/commands/tw_curve.h"
#include "cairn/core/formats/files.h"

namespace cairn::cli {
namespace {

solvers::TwRematOptions tw_options(const solvers::SolveOptions& options) {
  solvers::TwRematOptions tw{options};
  solvers::store_own(solvers::find_solver("tw").options, tw);
  return tw;
}

}  // namespace

int write_tw_curve(const Console& console, const fit::Problem& problem, const solvers::SolveOptions& options,
                   const std::string& path) {
  constexpr std::int32_t kMostPoints = 64;
  const std::vector<solvers::TwPoint> points = [&] {
    ProgressLine line(console);
    line.name_phase("decomposing the graph and running TWRemat(k)");
    return solvers::tw_sweep(problem.graph, tw_options(options), kMostPoints);
  }();
  write_output(path, [&] { return pipeline::tw_curve_csv(points); });
  Json list = Json::array();
  Rows rows{{"k", "steps", "% of nodes", "peak", "cost", "with values kept: steps", "cost"}};
  for (const solvers::TwPoint& point : points) {
    const auto known = [](std::int64_t steps, std::int64_t value) { return steps > 0 ? Json(value) : Json(nullptr); };
    list.push_back({{"k", point.k},
                    {"length", point.length},
                    {"steps", known(point.steps, point.steps)},
                    {"peak_bytes", known(point.steps, point.peak)},
                    {"cost", known(point.steps, point.cost)},
                    {"retained_steps", known(point.retained_steps, point.retained_steps)},
                    {"retained_cost", known(point.retained_steps, point.retained_cost)}});
    // TwPoint::length is at most 2^60, which also stands for greater lengths.
    const bool endless = point.length >= std::int64_t{1} << 60;
    const auto steps = static_cast<double>(point.steps > 0 ? point.steps : point.length);
    const double relative = steps / std::max(1, problem.graph.node_count());
    std::vector<std::string> row{std::to_string(point.k), endless ? "> 10^18" : std::to_string(point.length),
                                 fmt::format("{:.4g}", 100 * relative)};
    if (point.steps > 0) {
      row[1] = std::to_string(point.steps);
      row.insert(row.end(), {bytes_text(point.peak), cost_with_unit(problem, point.cost)});
    }
    if (point.retained_steps > 0)
      row.insert(row.end(), {std::to_string(point.retained_steps), cost_with_unit(problem, point.retained_cost)});
    row.resize(rows.front().size());
    rows.push_back(std::move(row));
  }
  Json json = describe(problem);
  json["solver"] = "tw";
  json["points"] = std::move(list);
  const bool complete = !points.empty() && points.back().k == 1;
  json["complete"] = complete;
  json["output"] = path;
  json["interrupted"] = catch_interrupt().load();
  const std::string cut = complete ? "" : "stopped before k = 1; a higher --time-limit goes on\n";
  console.print(json, format_table(rows, true) + cut);
  return catch_interrupt() ? kInterrupted : kDone;
}

int stream_tw_schedule(const Console& console, const fit::Problem& problem, const solvers::SolveOptions& options,
                       const std::string& path) {
  const solvers::TwRematOptions tw = tw_options(options);
  if (tw.k == 0) throw core::InputError("--stream writes one TWRemat(k): give --option k=K");
  if (path.empty()) throw core::InputError("--stream needs a file to write: give -o FILE");
  const solvers::TwPoint point = [&] {
    ProgressLine line(console);
    line.name_phase("decomposing the graph and writing the schedule");
    try {
      return pipeline::stream_tw_schedule(problem.graph, tw, path);
    } catch (const core::InterruptedError& error) {
      if (catch_interrupt()) throw;
      throw Failure(kNotFound, fmt::format("{}; raise --time-limit", error.what()));
    }
  }();
  const double increase = increase_pct(point.cost, problem.baseline.cost);
  Json json = describe(problem);
  json["solver"] = "tw";
  json["length"] = point.length;
  json["steps"] = point.steps;
  json["peak_bytes"] = point.peak;
  json["cost"] = point.cost;
  json["cost_increase_pct"] = increase;
  json["planned_bytes"] = nullptr;
  json["output"] = path;
  console.print(
      json, format_table({{"graph", problem.name},
                          {"steps", fmt::format("{} written of {} that Algorithm 1 makes", point.steps, point.length)},
                          {"peak", bytes_text(point.peak)},
                          {"cost", report::cost_and_increase(problem, point.cost)},
                          {"written to", path}}));
  return kDone;
}

}  // namespace cairn::cli
