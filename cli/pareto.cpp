#include "cairn/pipeline/pareto.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/cli/arguments.h"
#include "cairn/cli/objective.h"
#include "cairn/cli/output.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/text.h"
#include "cairn/core/version.h"

namespace cairn::cli {
namespace {

struct ParetoArguments {
  Console console;
  GraphArguments graph;
  SolverArguments search;
  StartArgument start;
  AlignmentChoice alignment;
  SearchAids aids;
  int points = 12;
  std::vector<std::string> budgets;
  std::string csv, report, svg, schedules;
  bool peak_only = false;

  /// What memory is counted in.
  AlignmentChoice counted() const { return peak_only ? AlignmentChoice{.given = 1} : alignment; }
};

Json to_json(const pipeline::Problem& problem, const pipeline::CurvePoint& point, bool knee, bool peak_only) {
  const auto if_known = [&](auto value) { return point.known() ? Json(value) : Json(nullptr); };
  const core::Evaluation& found = point.evaluation;
  const bool bounded = point.status != solvers::Status::infeasible;
  return {{"budget_bytes", point.budget},
          {"budget_pct", share_pct(problem, point.budget)},
          {"status", solvers::to_string(point.status)},
          {"peak_bytes", if_known(found.peak)},
          {"planned_bytes", point.known() && !peak_only ? Json(point.memory) : Json(nullptr)},
          {"cost", if_known(found.cost)},
          {"cost_increase_pct", if_known(increase_pct(found.cost, problem.baseline.cost))},
          {"lower_bound_cost", bounded ? Json(point.cost_bound.value) : Json(nullptr)},
          {"lower_bound_cost_scope", solvers::describe(point.cost_bound.scope)},
          {"gap_pct", if_known(pipeline::gap_pct(found.cost, point.cost_bound))},
          {"recomputed", if_known(found.recomputed)},
          {"steps", if_known(point.schedule.length())},
          {"knee", knee}};
}

Json to_json(const pipeline::Problem& problem, const ParetoArguments& arguments, std::int64_t alignment,
             const pipeline::Curve& curve) {
  Json json = describe(problem);
  json.erase("budget_bytes");
  json["solver"] = arguments.search.solver;
  json["alignment"] = alignment;
  json["peak_only"] = arguments.peak_only;
  json["points"] = Json::array();
  for (std::size_t i = 0; i < curve.points.size(); ++i)
    json["points"].push_back(to_json(problem, curve.points[i], curve.knee == i, curve.peak_only));
  json["knee"] = curve.knee ? json["points"][*curve.knee] : Json(nullptr);
  json["knee_definition"] = pipeline::kKneeDefinition;
  json["met"] = Json::array();
  for (const solvers::Tradeoff& met : curve.met) json["met"].push_back({{"peak_bytes", met.peak}, {"cost", met.cost}});
  json["passes"] = curve.passes;
  json["stopped"] = solvers::to_string(curve.stop);
  json["solve_seconds"] = curve.seconds;
  json["interrupted"] = catch_interrupt().load();
  return json;
}

std::string table(const pipeline::Problem& problem, std::int64_t alignment, const pipeline::Curve& curve) {
  Rows rows = {{"budget", "of baseline", "planned", "peak",
                fmt::format("cost ({})", core::to_string(problem.graph.cost_unit())), "increase", "at least", "gap",
                "status", ""}};
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const pipeline::CurvePoint& point = curve.points[i];
    const auto increase = [&](std::int64_t cost) {
      return fmt::format("{:+.2f}%", increase_pct(cost, problem.baseline.cost));
    };
    std::vector<std::string> row = {std::to_string(point.budget),
                                    fmt::format("{:.1f}%", share_pct(problem, point.budget))};
    if (point.known()) {
      const std::int64_t cost = point.evaluation.cost;
      row.insert(row.end(),
                 {curve.peak_only ? "-" : core::format_bytes(point.memory), core::format_bytes(point.evaluation.peak),
                  std::to_string(cost), increase(cost), increase(point.cost_bound.value),
                  fmt::format("{:.2f}%", pipeline::gap_pct(cost, point.cost_bound))});
    } else {
      row.insert(row.end(), 6, "-");
    }
    row.insert(row.end(), {std::string(solvers::to_string(point.status)), curve.knee == i ? "<- knee" : ""});
    rows.push_back(std::move(row));
  }
  const core::Graph& graph = problem.graph;
  std::string text = fmt::format("{}: {} nodes, {} edges; baseline peak {}, cost {}; alignment {}\n\n", problem.name,
                                 graph.node_count(), graph.edge_count(), baseline_peak_text(problem, alignment),
                                 baseline_cost_text(problem), alignment);
  text += format_table(rows, true) + "\n";
  if (curve.knee) text += fmt::format("the knee is {}\n", pipeline::kKneeDefinition);
  return text +
         fmt::format("stopped after {:.2f} s, {} passes, {}\n", curve.seconds, curve.passes, stop_text(curve.stop));
}

void write_schedules(const pipeline::Problem& problem, const ParetoArguments& arguments, const pipeline::Curve& curve) {
  if (arguments.schedules.empty()) return;
  for (const pipeline::CurvePoint& point : curve.points) {
    if (point.known())
      core::write_file(fmt::format("{}/{}.json", arguments.schedules, point.budget),
                       core::schedule_to_json(problem.graph, point.schedule, arguments.search.solver));
  }
}

void make_folder(const std::string& path) {
  if (path.empty()) return;
  if (path == "-") throw core::InputError("--schedules - is standard output, which is no folder; name one");
  std::error_code error;
  std::filesystem::create_directory(path, error);
  if (!std::filesystem::is_directory(path))
    throw core::InputError(fmt::format("--schedules '{}' is no folder and cannot be made one; name another", path));
  require_outputs({{"--schedules", path + "/s.json"}}, {});
}

std::vector<std::int64_t> parse_budgets(const ParetoArguments& arguments, const pipeline::Problem& problem) {
  std::vector<std::int64_t> budgets;
  for (const std::string& text : arguments.budgets)
    budgets.push_back(core::parse_budget(text, problem.hundred_percent));
  return budgets;
}

/// None of the given budgets can be met, or has been.
[[noreturn]] void fail_without_points(const pipeline::Problem& problem, const ParetoArguments& arguments,
                                      const pipeline::Curve& curve, Json json) {
  const std::int64_t most = curve.points.front().budget;
  const bool proved = curve.points.front().status == solvers::Status::infeasible;
  throw Failure(
      proved ? kInfeasible : kNotFound,
      fmt::format("{} '{}' {} {}, the largest of the budgets: the lower bound is {}, and {} are known to do; {}raise "
                  "--budgets{}",
                  proved ? "no schedule of" : "found no schedule of", problem.name,
                  proved || arguments.peak_only ? "fits into" : "whose plan fits into",
                  baseline_share_text(problem, most, true), baseline_share_text(problem, curve.peak_bound.value),
                  baseline_share_text(problem, curve.least_memory),
                  proved ? "" : fmt::format("the search ended {}; ", stop_text(curve.stop)),
                  proved ? "" : " or --time-limit"),
      std::move(json));
}

int pareto(const ParetoArguments& arguments) {
  const solvers::SolverInfo& solver = arguments.search.find();
  pipeline::CurveOptions options;
  options.fit.search = arguments.search.options();
  require_outputs({{"--csv", arguments.csv}, {"--report", arguments.report}, {"--svg", arguments.svg}},
                  {arguments.graph.input(), arguments.aids.input(), {"--start", arguments.start.path}});
  make_folder(arguments.schedules);
  const pipeline::Problem problem = arguments.graph.problem("", arguments.counted());
  const std::optional<core::Schedule> start = arguments.start.load(problem.graph, options.fit.search.scope);
  options.fit.search.start = start ? &*start : nullptr;
  options.fit.plan.alignment = arguments.counted().of(problem.graph);
  options.peak_only = arguments.peak_only;
  const OpenedAids aids = arguments.aids.open(problem.rounded_up(options.fit.plan.alignment).graph);
  aids.lend_to(options.fit.search);
  options.points = arguments.points;
  options.budgets = parse_budgets(arguments, problem);
  options.fit.search.limit = until_answer(options.fit.search.limit, problem.graph);
  pipeline::Curve curve;
  {
    ProgressLine line(arguments.console);
    options.progress = line.of_curve(options.fit.search.limit.seconds);
    curve = pipeline::pareto_curve(problem, solver, options);
  }
  if (!arguments.csv.empty()) core::write_file(arguments.csv, pipeline::curve_csv(problem, curve));
  if (!arguments.svg.empty()) core::write_file(arguments.svg, pipeline::curve_svg(problem, curve));
  if (!arguments.report.empty()) core::write_file(arguments.report, pipeline::curve_page(problem, solver.name, curve));
  write_schedules(problem, arguments, curve);
  Json json = to_json(problem, arguments, options.fit.plan.alignment, curve);
  const auto known = std::count_if(curve.points.begin(), curve.points.end(),
                                   [](const pipeline::CurvePoint& point) { return point.known(); });
  if (catch_interrupt())
    throw Failure(kInterrupted, fmt::format("interrupted; {} of {} points are known", known, curve.points.size()),
                  std::move(json));
  if (known == 0) fail_without_points(problem, arguments, curve, std::move(json));
  arguments.console.print(json, arguments.console.json ? "" : table(problem, options.fit.plan.alignment, curve));
  return kDone;
}

}  // namespace

Subcommand add_pareto(CLI::App& root) {
  CLI::App* app = root.add_subcommand("pareto", "the whole curve from memory to cost: what each budget costs");
  auto arguments = std::make_shared<ParetoArguments>();
  arguments->console.add_to(*app);
  arguments->search.add_to(*app, "30s");
  CLI::Option* points =
      app->add_option("--points", arguments->points,
                      "budgets, evenly from the least that costs nothing to the least that can be reached")
          ->capture_default_str()
          ->check(CLI::Range(2, 1000));
  app->add_option("--budgets", arguments->budgets, "these instead: 90%,80%,1.5GiB,12345")
      ->delimiter(',')
      ->excludes(points);
  arguments->start.add_to(*app);
  arguments->alignment.add_to(*app);
  add_peak_only(*app, arguments->peak_only);
  arguments->aids.add_to(*app);
  app->add_option("--csv", arguments->csv, "CSV file to write, a line a point");
  app->add_option("--report", arguments->report, "HTML page to write: the curve and its table");
  app->add_option("--svg", arguments->svg, "picture of the curve to write");
  app->add_option("--schedules", arguments->schedules, "folder for the points' schedules: BUDGET.json, in bytes");
  arguments->graph.add_to(*app);
  app->footer(
      "Examples:\n"
      "  cairn pareto resnet50 --batch 8 --report curve.html\n"
      "  cairn pareto graph.json --budgets 90%,80%,70% --csv curve.csv --schedules points --time-limit 2m");
  return {app, [arguments] { return pareto(*arguments); }};
}

}  // namespace cairn::cli
