#include "cairn/cli/tw_curve.h"

#include <fmt/format.h>

#include <vector>

#include "cairn/core/formats/files.h"
#include "cairn/solvers/remat/tw_remat.h"

namespace cairn::cli {
namespace {

solvers::TwRematOptions tw_options(const solvers::SolveOptions& options) {
  solvers::TwRematOptions tw{options};
  const auto own = [&](const char* name, std::int64_t initial) {
    const auto given = options.own.find(name);
    return given == options.own.end() ? initial : given->second;
  };
  tw.k = own("k", 0);
  tw.retain = own("retain", 1) != 0;
  tw.most_steps = own("steps", 0);
  return tw;
}

/// 2^60 stands for more.
std::string length_text(std::int64_t length) {
  return length >= std::int64_t{1} << 60 ? ">1e18" : std::to_string(length);
}

}  // namespace

int write_tw_curve(const Console& console, const pipeline::Problem& problem, const solvers::SolveOptions& options,
                   const std::string& path) {
  constexpr std::int32_t kMostPoints = 64;
  const std::vector<solvers::TwPoint> points = solvers::tw_sweep(problem.graph, tw_options(options), kMostPoints);
  std::string csv = "k,length,steps,peak_bytes,cost,retained_steps,retained_cost\n";
  Json list = Json::array();
  Rows rows{{"k", "steps", "% of nodes", "peak", "cost", "kept what fits: steps", "cost"}};
  for (const solvers::TwPoint& point : points) {
    const bool known = point.steps > 0, retained = point.retained_steps > 0;
    const auto if_known = [&](bool is, std::int64_t value) { return is ? Json(value) : Json(nullptr); };
    const auto cell = [&](bool is, std::int64_t value) { return is ? std::to_string(value) : std::string(); };
    csv +=
        fmt::format("{},{},{},{},{},{},{}\n", point.k, point.length, cell(known, point.steps), cell(known, point.peak),
                    cell(known, point.cost), cell(retained, point.retained_steps), cell(retained, point.retained_cost));
    list.push_back({{"k", point.k},
                    {"length", point.length},
                    {"steps", if_known(known, point.steps)},
                    {"peak_bytes", if_known(known, point.peak)},
                    {"cost", if_known(known, point.cost)},
                    {"retained_steps", if_known(retained, point.retained_steps)},
                    {"retained_cost", if_known(retained, point.retained_cost)}});
    rows.push_back({std::to_string(point.k), known ? std::to_string(point.steps) : length_text(point.length),
                    known ? fmt::format("{:.1f}", 100.0 * static_cast<double>(point.steps) /
                                                      std::max(1, problem.graph.node_count()))
                          : "",
                    known ? bytes_text(point.peak) : "not looked at", cell(known, point.cost),
                    cell(retained, point.retained_steps), cell(retained, point.retained_cost)});
  }
  core::write_file(path, csv);
  Json json = describe(problem);
  json["solver"] = "tw";
  json["points"] = std::move(list);
  json["complete"] = !points.empty() && points.back().k == 1;
  json["output"] = path;
  json["interrupted"] = catch_interrupt().load();
  console.print(json, format_table(rows, true));
  return catch_interrupt() ? kInterrupted : kDone;
}

int stream_tw_schedule(const Console& console, const pipeline::Problem& problem, const solvers::SolveOptions& options,
                       const std::string& path) {
  const solvers::TwRematOptions tw = tw_options(options);
  if (tw.k == 0) throw core::InputError("--stream writes one TWRemat(k): give --option k=K");
  if (path.empty()) throw core::InputError("--stream needs a file to write: give -o FILE");
  core::ScheduleWriter file(path, problem.graph, "tw");
  const solvers::TwPoint point =
      solvers::stream_tw_remat(problem.graph, tw, [&](std::span<const core::NodeId> steps) { file.write(steps); });
  file.commit(point.peak, point.cost);
  Json json = describe(problem);
  json["solver"] = "tw";
  json["length"] = point.length;
  json["steps"] = point.steps;
  json["peak_bytes"] = point.peak;
  json["cost"] = point.cost;
  json["cost_increase_pct"] = increase_pct(point.cost, problem.baseline.cost);
  json["planned_bytes"] = nullptr;
  json["output"] = path;
  console.print(
      json,
      format_table({{"graph", problem.name},
                    {"steps", fmt::format("{}, of {} of Algorithm 1", point.steps, point.length)},
                    {"peak", bytes_text(point.peak)},
                    {"cost", fmt::format("{} ({:+.2f}%)", point.cost, increase_pct(point.cost, problem.baseline.cost))},
                    {"written to", path}}));
  return kDone;
}

}  // namespace cairn::cli
