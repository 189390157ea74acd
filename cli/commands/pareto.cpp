#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
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
#include "cairn/core/support/text.h"
#include "cairn/pipeline/request.h"
#include "cairn/report/pages.h"
#include "cairn/report/support/json.h"
#include "cairn/report/support/words.h"
#include "cairn/solvers/fit/curve.h"
#include "cairn/solvers/fit/link_worth.h"

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
  std::string link, host_budget;
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

/// Returns whether a file could be the file of a schedule in --schedules, whose name is a budget.
bool is_named_by_budget(const std::filesystem::path& file) {
  const std::string stem = file.stem().string();
  return file.extension() == ".json" && !stem.empty() && stem.find_first_not_of("0123456789") == std::string::npos;
}

/// Makes the folder for schedules. Throws InputError if the file of a schedule could replace one of `others`, files
/// that are read or written.
void make_folder(const std::string& path, const std::vector<std::string>& others) {
  if (path.empty()) return;
  if (path == "-") throw core::InputError("--schedules - is standard output, which is not a folder; name one");
  std::error_code error;
  std::filesystem::create_directory(path, error);
  if (!std::filesystem::is_directory(path))
    throw core::InputError(fmt::format("--schedules '{}' is not a folder and cannot be made one; name another", path));
  require_outputs({{"--schedules", path + "/s.json"}}, {});
  for (const std::string& other : others) {
    if (!is_named_by_budget(other)) continue;
    if (std::filesystem::equivalent(std::filesystem::absolute(other).parent_path(), path, error))
      throw core::InputError(
          fmt::format("--schedules '{}' contains '{}', which the file of a schedule could replace; "
                      "name another folder",
                      path, other));
  }
}

std::vector<std::int64_t> parse_budgets(const ParetoArguments& arguments, const fit::Problem& problem) {
  std::vector<std::int64_t> budgets;
  for (const std::string& text : arguments.budgets)
    budgets.push_back(core::parse_budget(text, problem.hundred_percent));
  return budgets;
}

/// A second curve, whose schedules may use transfers over the link, and a comparison with the curve without transfers.
struct LinkedCurve {
  fit::Problem problem;
  fit::Curve curve;
  fit::LinkWorth worth;
};

LinkedCurve find_linked(const ParetoArguments& arguments, const core::HostMemory& host, const fit::Problem& problem,
                        const fit::Curve& alone, fit::CurveOptions options, const core::Stopwatch& watch) {
  constexpr double kShare = 0.95;  // the rest of the time is for the comparison of both curves
  LinkedCurve linked{
      fit::Problem(problem.graph.with_host_memory(host), "", problem.name, options.fit.plan.alignment), {}, {}};
  warn_of_costs(linked.problem.graph, problem.name);
  options.fit.search.limit = watch.share(kShare);
  linked.curve = fit::pareto_curve(linked.problem, arguments.search.find(), options);
  std::vector<solvers::Tradeoff> recomputed = alone.met;
  for (const fit::CurvePoint& point : alone.points) {
    if (point.known()) recomputed.push_back({point.memory(), point.evaluation.cost});
  }
  const fit::Problem rounded = linked.problem.rounded_up(options.fit.plan.alignment);
  linked.worth = fit::link_worth(linked.problem, rounded, recomputed,
                                 options.peak_only ? std::nullopt : std::optional(options.fit.plan), watch.rest());
  return linked;
}

/// Throws a Failure if Ctrl-C was pressed, or if no point of the curve is known.
void check_curve(const fit::Problem& problem, const fit::Curve& curve, const Json& json) {
  const auto known = std::count_if(curve.points.begin(), curve.points.end(),
                                   [](const fit::CurvePoint& point) { return point.known(); });
  if (catch_interrupt())
    throw Failure(kInterrupted, fmt::format("interrupted; {} of {} points are known", known, curve.points.size()),
                  json);
  if (known > 0) return;
  const bool proved = curve.points.front().status == solvers::Status::infeasible;
  throw Failure(proved ? kInfeasible : kNotFound, report::no_points_text(problem, curve), json);
}

int pareto(const ParetoArguments& arguments) {
  constexpr double kShareAlone = 0.4;
  const solvers::SolverInfo& solver = arguments.search.find();
  fit::CurveOptions options;
  options.fit.search = arguments.search.options();
  require_outputs({{"--csv", arguments.csv}, {"--report", arguments.report}, {"--svg", arguments.svg}},
                  {arguments.graph.input(), arguments.aids.input(), {"--start", arguments.start.path}});
  const std::optional<core::HostMemory> host = pipeline::parse_host_memory(arguments.link, arguments.host_budget);
  make_folder(arguments.schedules,
              {arguments.graph.name, arguments.start.path, arguments.csv, arguments.report, arguments.svg});
  const fit::Problem problem = arguments.graph.problem("", arguments.counted());
  const auto start = arguments.start.load_into(options.fit.search, solver, problem.graph.with_host_memory(host));
  if (start && !start->schedule.transfers.empty())
    throw core::InputError("--start of pareto is a schedule without transfers; 'cairn solve --link' starts with them");
  options.fit.plan.alignment = arguments.counted().of(problem.graph);
  options.peak_only = arguments.peak_only;
  const OpenedAids aids = arguments.aids.open(problem.rounded_up(options.fit.plan.alignment).graph);
  aids.lend_to(options.fit.search);
  options.points = arguments.points;
  options.budgets = parse_budgets(arguments, problem);
  options.fit.search.limit = until_answer(options.fit.search.limit, problem.graph);
  const core::Stopwatch watch(options.fit.search.limit);
  fit::Curve curve;
  std::optional<LinkedCurve> linked;
  {
    ProgressLine line(arguments.console);
    options.progress = line.of_curve(options.fit.search.limit.seconds);
    if (host) options.fit.search.limit = watch.share(kShareAlone);
    curve = fit::pareto_curve(problem, solver, options);
    if (host) linked = find_linked(arguments, *host, problem, curve, options, watch);
  }
  const fit::Problem& shown = linked ? linked->problem : problem;
  const fit::Curve& best = linked ? linked->curve : curve;
  const report::WithoutLink without = {.curve = &curve, .worth = linked ? &linked->worth : nullptr};
  const report::WithoutLink* beside = linked ? &without : nullptr;
  write_output(arguments.csv, [&] { return report::curve_csv(shown, best, beside); });
  write_output(arguments.svg, [&] { return report::curve_svg(shown, best, beside); });
  write_output(arguments.report, [&] { return report::curve_page(shown, solver.name, best, beside); });
  write_schedules(shown, arguments, best);
  const std::int64_t alignment = options.fit.plan.alignment;
  const auto json_of = [&](const fit::Problem& of, const fit::Curve& one) {
    return report::curve_json(of, solver.name, alignment, one, catch_interrupt());
  };
  Json json = json_of(shown, best);
  if (linked) {
    report::add_link_worth(json, shown, linked->worth);
    json["without_link"] = json_of(problem, curve);
  }
  check_curve(shown, best, json);
  std::string text;
  if (!arguments.console.json && linked)
    text = fmt::format("without the link: {}\nover {}: {}\n{}\n", report::curve_table(problem, alignment, curve),
                       core::describe(host->link), report::curve_table(shown, alignment, best),
                       report::link_worth_text(shown, linked->worth));
  if (!arguments.console.json && !linked) text = report::curve_table(problem, alignment, curve);
  arguments.console.print(json, text);
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
  add_link(*app, arguments->link, arguments->host_budget);
  arguments->aids.add_to(*app);
  app->add_option("--csv", arguments->csv, "CSV file to write, one line per point");
  app->add_option("--report", arguments->report, "HTML page to write: the curve and its table");
  app->add_option("--svg", arguments->svg, "picture of the curve to write");
  app->add_option("--schedules", arguments->schedules, "folder for the points' schedules: BUDGET.json, in bytes");
  arguments->graph.add_to(*app);
  app->footer(
      "Examples:\n"
      "  cairn pareto resnet50 --batch 8 --report curve.html\n"
      "  cairn pareto graph.json --budgets 90%,80%,70% --csv curve.csv --schedules points --time-limit 2m\n"
      "  cairn pareto gpt2 --batch 8 --link pcie4 --svg curve.svg    with and without moving tensors to the host");
  return {app, [arguments] { return pareto(*arguments); }};
}

}  // namespace cairn::cli
