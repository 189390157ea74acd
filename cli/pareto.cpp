#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cairn/cli/arguments.h"
#include "cairn/cli/objective.h"
#include "cairn/cli/output.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/text.h"
#include "cairn/report/pages.h"
#include "cairn/solvers/fit/curve.h"

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

  /// Returns the alignment to which sizes are rounded up. With --peak-only, it is 1, because no plans are made.
  AlignmentChoice counted() const { return peak_only ? AlignmentChoice{.given = 1} : alignment; }
};

void write_schedules(const fit::Problem& problem, const ParetoArguments& arguments, const fit::Curve& curve) {
  if (arguments.schedules.empty()) return;
  for (const fit::CurvePoint& point : curve.points) {
    if (!point.known()) continue;
    write_output(fmt::format("{}/{}.json", arguments.schedules, point.budget), [&] {
      return core::schedule_to_json(problem.graph, point.schedule, arguments.search.solver, point.plan);
    });
  }
}

void make_folder(const std::string& path) {
  if (path.empty()) return;
  if (path == "-") throw core::InputError("--schedules - is standard output, which is not a folder; name one");
  std::error_code error;
  std::filesystem::create_directory(path, error);
  if (!std::filesystem::is_directory(path))
    throw core::InputError(fmt::format("--schedules '{}' is not a folder and cannot be made one; name another", path));
  require_outputs({{"--schedules", path + "/s.json"}}, {});
}

std::vector<std::int64_t> parse_budgets(const ParetoArguments& arguments, const fit::Problem& problem) {
  std::vector<std::int64_t> budgets;
  for (const std::string& text : arguments.budgets)
    budgets.push_back(core::parse_budget(text, problem.hundred_percent));
  return budgets;
}

int pareto(const ParetoArguments& arguments) {
  const solvers::SolverInfo& solver = arguments.search.find();
  fit::CurveOptions options;
  options.fit.search = arguments.search.options();
  require_outputs({{"--csv", arguments.csv}, {"--report", arguments.report}, {"--svg", arguments.svg}},
                  {arguments.graph.input(), arguments.aids.input(), {"--start", arguments.start.path}});
  make_folder(arguments.schedules);
  const fit::Problem problem = arguments.graph.problem("", arguments.counted());
  const auto start = arguments.start.load_into(options.fit.search, solver, problem.graph);
  options.fit.plan.alignment = arguments.counted().of(problem.graph);
  options.peak_only = arguments.peak_only;
  const OpenedAids aids = arguments.aids.open(problem.rounded_up(options.fit.plan.alignment).graph);
  aids.lend_to(options.fit.search);
  options.points = arguments.points;
  options.budgets = parse_budgets(arguments, problem);
  options.fit.search.limit = until_answer(options.fit.search.limit, problem.graph);
  fit::Curve curve;
  {
    ProgressLine line(arguments.console);
    options.progress = line.of_curve(options.fit.search.limit.seconds);
    curve = fit::pareto_curve(problem, solver, options);
  }
  write_output(arguments.csv, [&] { return report::curve_csv(problem, curve); });
  write_output(arguments.svg, [&] { return report::curve_svg(problem, curve); });
  write_output(arguments.report, [&] { return report::curve_page(problem, solver.name, curve); });
  write_schedules(problem, arguments, curve);
  Json json = report::curve_json(problem, solver.name, options.fit.plan.alignment, curve, catch_interrupt());
  const auto known = std::count_if(curve.points.begin(), curve.points.end(),
                                   [](const fit::CurvePoint& point) { return point.known(); });
  if (catch_interrupt())
    throw Failure(kInterrupted, fmt::format("interrupted; {} of {} points are known", known, curve.points.size()),
                  std::move(json));
  if (known == 0) {
    const bool proved = curve.points.front().status == solvers::Status::infeasible;
    throw Failure(proved ? kInfeasible : kNotFound, report::no_points_text(problem, curve), std::move(json));
  }
  arguments.console.print(
      json, arguments.console.json ? "" : report::curve_table(problem, options.fit.plan.alignment, curve));
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
                      "number of budgets, at equal distances from the least one without extra cost down to the least "
                      "that can be reached")
          ->capture_default_str()
          ->check(CLI::Range(2, 1000));
  app->add_option("--budgets", arguments->budgets, "exactly these budgets: 90%,80%,1.5GiB,12345")
      ->delimiter(',')
      ->excludes(points);
  arguments->start.add_to(*app);
  arguments->alignment.add_to(*app);
  add_peak_only(*app, arguments->peak_only);
  arguments->aids.add_to(*app);
  app->add_option("--csv", arguments->csv, "CSV file to write, one line per point");
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
