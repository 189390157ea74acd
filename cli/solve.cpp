#include "cairn/pipeline/solve.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "cairn/cli/arguments.h"
#include "cairn/cli/output.h"
#include "cairn/cli/tw_curve.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/profile.h"
#include "cairn/pipeline/backend.h"
#include "cairn/pipeline/pareto.h"
#include "cairn/solvers/decomposition/td_file.h"

namespace cairn::cli {
namespace {

struct SolveArguments {
  Console console;
  GraphArguments graph;
  SolverArguments search;
  StartArgument start;
  AlignmentChoice alignment;
  std::string budget, max_cost, output, plan, td, backend = "host", sweep;
  bool peak_only = false, stream = false;
};

/// What is looked for.
enum class Objective : std::uint8_t {
  within_budget,  ///< the cheapest whose plan fits
  within_peak,    ///< the cheapest whose peak fits
  within_cost,    ///< the least peak that costs no more
  least_peak,     ///< then the least cost
  knee,           ///< of the curve from memory to cost
};

std::string_view to_string(Objective objective) {
  static constexpr std::array<std::string_view, 5> kNames{"least cost within a planned budget",
                                                          "least cost within a budget of peak",
                                                          "least peak within a cost", "least peak", "knee"};
  return kNames[static_cast<std::size_t>(objective)];
}

/// What is to be solved.
struct Task {
  pipeline::Problem problem;
  pipeline::Problem rounded;  ///< what is searched where plans are to fit
  Objective objective = Objective::least_peak;
  std::int64_t alignment = 1;
  std::optional<std::int64_t> max_cost;
};

/// The best that was found. Bounds are about what was searched.
struct Answer {
  pipeline::Solved found;
  std::optional<core::Plan> plan;  ///< none for a long schedule after Ctrl-C: people wait for the prompt then
  bool success = false;
  std::optional<pipeline::Curve> curve;

  bool plan_alone_misses(std::optional<std::int64_t> budget) const { return plan && found.within(budget); }
  /// Whether there is something to write: the answer or, where that is not proved pointless, the best so far.
  bool has_schedule() const {
    return success || (!found.solution.schedule.steps.empty() && found.solution.status != solvers::Status::infeasible);
  }
};

/// "10%": of the baseline's cost, on top of it; "1.1x": times it; or a cost. Throws InputError.
std::int64_t parse_cost(const std::string& text, std::int64_t baseline) {
  std::int64_t whole = 0;
  const char* last = text.data() + text.size();
  if (std::from_chars(text.data(), last, whole) == std::from_chars_result{last, {}} && whole >= 0) return whole;
  double number = 0;
  std::size_t end = 0;
  try {
    number = std::stod(text, &end);
  } catch (const std::exception&) {
  }
  const std::string unit = text.substr(end);
  const double cost = unit == "%"   ? (1 + number / 100) * static_cast<double>(baseline)
                      : unit == "x" ? number * static_cast<double>(baseline)
                                    : number;
  const bool known_unit = unit.empty() || unit == "%" || unit == "x";
  if (end == 0 || !known_unit || !std::isfinite(cost) || number < 0 || cost >= 9e18)
    throw core::InputError(fmt::format(
        "--max-cost '{}' is no cost; give 10% (above the baseline's {}), 1.1x (times it), or a cost as 12345", text,
        baseline));
  // What costs that many percent more to the unit is within; the product may be a hair below.
  return static_cast<std::int64_t>(cost * (1 + 1e-12) + 1e-9);
}

Task task_of(const SolveArguments& arguments) {
  const bool least = arguments.budget == "min";
  if (!arguments.budget.empty() && !arguments.max_cost.empty())
    throw core::InputError("--budget and --max-cost both limit the search; drop one of them");
  if (arguments.peak_only && (arguments.budget.empty() || least))
    throw core::InputError("--peak-only is about a --budget of bytes; give one, or drop it");
  const pipeline::Problem problem = arguments.graph.problem(
      least ? "" : arguments.budget, arguments.peak_only ? AlignmentChoice{.given = 1} : arguments.alignment);
  const std::int64_t alignment = arguments.alignment.of(problem.graph);
  Task task{problem, problem.rounded_up(alignment), Objective::least_peak, alignment, {}};
  if (!arguments.max_cost.empty()) {
    task.objective = Objective::within_cost;
    task.max_cost = parse_cost(arguments.max_cost, task.problem.baseline.cost);
  } else if (task.problem.budget) {
    task.objective = arguments.peak_only ? Objective::within_peak : Objective::within_budget;
  } else if (!least && arguments.search.solver == "auto") {
    task.objective = Objective::knee;
  }
  return task;
}

/// Throws where no schedule is as cheap as was asked for.
void require_affordable(const Task& task) {
  if (!task.max_cost || *task.max_cost >= task.problem.baseline.cost) return;
  Json json = describe(task.problem);
  json["max_cost"] = *task.max_cost;
  json["status"] = solvers::to_string(solvers::Status::infeasible);
  throw Failure(kInfeasible,
                fmt::format("no schedule of '{}' costs {} or less: running every node once costs {}", task.problem.name,
                            *task.max_cost, task.problem.baseline.cost),
                std::move(json));
}

/// The plan of what was found for its peak's sake. A long one that is no answer is not waited for.
void plan_found(const Task& task, const solvers::SolveOptions& search, Answer& answer) {
  constexpr std::int64_t kQuicklyPlanned = 20'000;  // steps
  const bool interrupted = catch_interrupt();
  const solvers::Solution& solution = answer.found.solution;
  if ((interrupted || !answer.success) && solution.schedule.length() > kQuicklyPlanned) return;
  solvers::PlanOptions options{.alignment = task.alignment};
  options.limit.stop = search.limit.stop;
  options.limit.seconds = std::max(0.0, search.limit.seconds - answer.found.seconds);
  if (interrupted) options.limit.work = 0;
  answer.plan = pipeline::checked_plan(task.problem.graph, solution.schedule, options).plan;
}

Answer search_peak(const Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search) {
  Answer answer;
  solvers::SolveOptions options = search;
  options.budget = task.problem.budget;
  options.max_cost = task.max_cost;
  // The baseline costs no more than any other schedule.
  const core::Schedule baseline = core::baseline_schedule(task.problem.graph);
  if (task.max_cost && options.start == nullptr) options.start = &baseline;
  options.limit.seconds *= pipeline::share_for_search(task.problem.graph, options.limit.seconds);
  answer.found = pipeline::solve(task.problem.graph, solver, options);
  answer.success =
      answer.found.within(task.problem.budget) && (!task.max_cost || answer.found.solution.cost <= *task.max_cost);
  if (answer.has_schedule()) plan_found(task, search, answer);
  return answer;
}

Answer search_plan(const Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search) {
  const pipeline::FitOptions options = pipeline::patient(task.problem.graph, search, {.alignment = task.alignment});
  pipeline::Fit fit = pipeline::fit_to_budget(task.problem, task.rounded, solver, options);
  Answer answer;
  answer.success = fit.fits();
  answer.found.solution = std::move(fit.solution);
  answer.found.seconds = fit.seconds;
  answer.plan = std::move(fit.plan);
  if (answer.has_schedule()) {
    answer.found.evaluation = pipeline::evaluate_again(solver.name, task.rounded.graph, answer.found.solution);
    if (!answer.plan) plan_found(task, search, answer);
  }
  return answer;
}

Answer search_knee(const Task& task, const solvers::SolverInfo& solver, const solvers::SolveOptions& search,
                   const Console& console) {
  pipeline::CurveOptions options;
  options.fit.search = search;
  options.fit.plan.alignment = task.alignment;
  options.points = 8;
  ProgressLine line(console);
  options.progress = line.of_curve(search.limit.seconds);
  Answer answer;
  answer.curve = pipeline::pareto_curve(task.problem, solver, options);
  const pipeline::Curve& curve = *answer.curve;
  const pipeline::CurvePoint& knee = curve.points[curve.knee.value()];
  solvers::Solution& solution = answer.found.solution;
  solution.status = knee.status;
  solution.scope = search.scope;
  solution.schedule = knee.schedule;
  solution.peak_bound = curve.peak_bound;
  solution.cost_bound = knee.cost_bound;
  solution.peak = solution.least_peak = knee.evaluation.peak;
  solution.cost = knee.evaluation.cost;
  for (const pipeline::CurvePoint& point : curve.points) {
    if (point.known()) solution.least_peak = std::min(solution.least_peak, point.evaluation.peak);
  }
  solution.least_peak_by = solver.name;
  solution.tradeoffs = curve.met;
  solution.best_seconds = answer.found.seconds = curve.seconds;
  solution.timed_out = curve.stop == solvers::Stop::limit;
  solution.stop = curve.stop;
  answer.success = true;
  answer.plan = knee.plan;
  return answer;
}

Answer search(const Task& task, const solvers::SolverInfo& solver, solvers::SolveOptions options,
              const Console& console) {
  if (task.objective == Objective::knee) return search_knee(task, solver, options, console);
  ProgressLine line(console);
  options.progress = line.of_search(task.problem, options.limit.seconds);
  return task.objective == Objective::within_budget ? search_plan(task, solver, options)
                                                    : search_peak(task, solver, options);
}

void write(const Task& task, const SolveArguments& arguments, const Answer& answer) {
  if (!answer.has_schedule()) return;
  const core::Graph& graph = task.problem.graph;
  if (!arguments.output.empty())
    core::write_file(arguments.output,
                     core::schedule_to_json(graph, answer.found.solution.schedule, arguments.search.solver));
  if (!arguments.plan.empty() && answer.plan) core::write_file(arguments.plan, core::plan_to_json(graph, *answer.plan));
}

Json point_json(const pipeline::Problem& problem, const pipeline::CurvePoint& point) {
  return {{"budget_bytes", point.budget},
          {"peak_bytes", point.evaluation.peak},
          {"planned_bytes", point.planned},
          {"cost", point.evaluation.cost},
          {"cost_increase_pct", increase_pct(point.evaluation.cost, problem.baseline.cost)}};
}

/// The points on both sides of the knee.
struct Sides {
  const pipeline::CurvePoint *more_memory = nullptr, *less_memory = nullptr;
};
Sides sides_of(const pipeline::Curve& curve) {
  const std::size_t knee = curve.knee.value();
  Sides sides;
  const auto differs = [&](const pipeline::CurvePoint& point) {
    return point.known() && point.planned != curve.points[knee].planned;
  };
  for (std::size_t i = knee; i-- > 0 && sides.more_memory == nullptr;) {
    if (differs(curve.points[i])) sides.more_memory = &curve.points[i];
  }
  for (std::size_t i = knee + 1; i < curve.points.size() && sides.less_memory == nullptr; ++i) {
    if (differs(curve.points[i])) sides.less_memory = &curve.points[i];
  }
  return sides;
}

Json knee_json(const pipeline::Problem& problem, const pipeline::Curve& curve) {
  const Sides sides = sides_of(curve);
  const auto side = [&](const pipeline::CurvePoint* point) {
    return point != nullptr ? point_json(problem, *point) : Json(nullptr);
  };
  Json json = point_json(problem, curve.points[*curve.knee]);
  json["more_memory"] = side(sides.more_memory);
  json["less_memory"] = side(sides.less_memory);
  json["definition"] = pipeline::kKneeDefinition;
  return json;
}

Json to_json(const Task& task, const SolveArguments& arguments, const Answer& answer,
             const pipeline::LeastBudget& least) {
  const solvers::Solution& solution = answer.found.solution;
  const bool shown = answer.has_schedule();
  const core::Evaluation found = core::evaluate(task.problem.graph, solution.schedule);
  const auto if_any = [&](auto value) { return shown ? Json(value) : Json(nullptr); };
  const bool bounded = answer.success && task.objective != Objective::least_peak;
  const solvers::Status status =
      answer.success || solution.status == solvers::Status::infeasible ? solution.status : solvers::Status::not_found;
  Json json = describe(task.problem);
  json["solver"] = arguments.search.solver;
  json["objective"] = to_string(task.objective);
  json["max_cost"] = or_null(task.max_cost);
  json["status"] = solvers::to_string(status);
  json["stopped"] = solvers::to_string(solution.stop);
  json["recomputes"] = solution.scope.max_occurrences != 1;
  json["scope"] = solvers::describe(solution.scope);
  json["lower_bound_scope"] = solvers::describe(solution.peak_bound.scope);
  json["lower_bound_cost"] = solution.cost_bound.value;
  json["lower_bound_cost_scope"] = solvers::describe(solution.cost_bound.scope);
  json["gap_pct"] = bounded ? Json(pipeline::gap_pct(found.cost, solution.cost_bound)) : Json(nullptr);
  add_limits(json, task.problem, least);
  json["peak_bytes"] = if_any(found.peak);
  json["cost"] = if_any(found.cost);
  json["cost_increase_pct"] = if_any(increase_pct(found.cost, task.problem.baseline.cost));
  json["recomputed"] = if_any(found.recomputed);
  json["steps"] = if_any(solution.schedule.length());
  json["planned_bytes"] = answer.plan ? Json(answer.plan->bytes) : Json(nullptr);
  json["plan_fits"] =
      answer.plan ? Json(!task.problem.budget || answer.plan->bytes <= *task.problem.budget) : Json(nullptr);
  json["alignment"] = task.alignment;
  json["valid"] = shown && found.valid();
  if (answer.curve) json["knee"] = knee_json(task.problem, *answer.curve);
  json["solve_seconds"] = answer.found.seconds;
  json["best_seconds"] = solution.best_seconds;
  json["timed_out"] = solution.timed_out;
  json["interrupted"] = catch_interrupt().load();
  return json;
}

std::string side_text(const pipeline::Problem& problem, const pipeline::CurvePoint* point, std::string_view none) {
  if (point == nullptr) return std::string(none);
  return fmt::format("{} ({:.1f}%) at {:+.2f}%", core::format_bytes(point->planned),
                     100 + increase_pct(point->planned, problem.baseline.peak),
                     increase_pct(point->evaluation.cost, problem.baseline.cost));
}

std::string table(const Task& task, const SolveArguments& arguments, const Answer& answer) {
  const pipeline::Problem& problem = task.problem;
  const core::Graph& graph = problem.graph;
  const solvers::Solution& solution = answer.found.solution;
  const core::Evaluation found = core::evaluate(graph, solution.schedule);
  Rows rows = {
      {"graph", fmt::format("{}: {} nodes, {} edges", problem.name, graph.node_count(), graph.edge_count())},
      {"solver", fmt::format("{}: {} in {:.2f} s, ended {}", arguments.search.solver,
                             solvers::to_string(solution.status), answer.found.seconds, stop_text(solution.stop))}};
  if (answer.curve) {
    const Sides sides = sides_of(*answer.curve);
    rows.push_back({"knee", side_text(problem, &answer.curve->points[*answer.curve->knee], "") +
                                ": no budget was given; --budget min is the least peak"});
    rows.push_back({"beside it", fmt::format("{}; {}", side_text(problem, sides.more_memory, "nothing is cheaper"),
                                             side_text(problem, sides.less_memory, "nothing lower is known"))});
  }
  if (problem.budget) rows.push_back({"budget", bytes_text(*problem.budget)});
  if (task.max_cost)
    rows.push_back({"cost limit",
                    fmt::format("{} ({:+.2f}%)", *task.max_cost, increase_pct(*task.max_cost, problem.baseline.cost))});
  rows.push_back(
      {"peak", fmt::format("{}, {:.1f}% of the baseline's {}", bytes_text(found.peak),
                           100 + increase_pct(found.peak, problem.baseline.peak), bytes_text(problem.baseline.peak))});
  std::string planned = fmt::format("{}, with --alignment {}", bytes_text(answer.plan->bytes), task.alignment);
  if (problem.budget && answer.plan->bytes > *problem.budget)
    planned += fmt::format("; {:.1f}% above the budget, which is on the peak alone",
                           increase_pct(answer.plan->bytes, *problem.budget));
  rows.push_back({"planned", planned});
  rows.push_back({"lower bound", bytes_text(problem.lower_bound) + scope_text(solution.scope)});
  rows.push_back({"cost", fmt::format("{} ({:+.2f}%)", found.cost, increase_pct(found.cost, problem.baseline.cost))});
  if (solution.status == solvers::Status::feasible && (problem.budget || answer.curve))
    rows.push_back({"gap", gap_text(found.cost, solution.cost_bound)});
  rows.push_back({"steps", fmt::format("{}, {} of them recomputed", solution.schedule.length(), found.recomputed)});
  rows.push_back({"resident", bytes_text(graph.resident_bytes()) + ", beside the budget"});
  return format_table(rows);
}

/// --sweep and --stream stand alone: throws InputError on what they would ignore.
void check_tw_outputs(const SolveArguments& arguments, solvers::SolveOptions& options) {
  const bool sweep = !arguments.sweep.empty();
  if (!sweep && !arguments.stream) return;
  const std::string_view name = sweep ? "--sweep" : "--stream";
  if (arguments.search.solver != "tw")
    throw core::InputError(fmt::format("{} is about TWRemat(k): give --solver tw", name));
  const std::pair<std::string_view, bool> ignored[] = {{"--stream", sweep && arguments.stream},
                                                       {"-o", sweep && !arguments.output.empty()},
                                                       {"--plan", !arguments.plan.empty()},
                                                       {"--budget", !arguments.budget.empty()},
                                                       {"--option k", sweep && options.own.contains("k")}};
  for (const auto& [option, given] : ignored) {
    if (given) throw core::InputError(fmt::format("{} does not go with {}; drop one of them", option, name));
  }
  // How long a schedule takes to write depends on k alone.
  if (arguments.stream && arguments.search.time_limit.empty())
    options.limit.seconds = std::numeric_limits<double>::infinity();
}

/// The problem as it was searched, for words about what does not fit.
pipeline::Problem searched(const Task& task, const Answer& answer) {
  // What does not fit as it is does not because of rounding.
  const bool rounded = task.objective == Objective::within_budget && *task.problem.budget >= task.problem.lower_bound;
  pipeline::Problem problem = rounded ? task.rounded : task.problem;
  problem.lower_bound = std::max(problem.lower_bound, answer.found.solution.peak_bound.value);
  return problem;
}

/// Ends the command: nothing that was asked for is known.
[[noreturn]] void fail(const pipeline::Problem& problem, const Task& task, const SolveArguments& arguments,
                       const Answer& answer, const pipeline::LeastBudget& least, Json json) {
  const solvers::Solution& solution = answer.found.solution;
  if (solution.status == solvers::Status::infeasible) {
    json["lower_bound_peak_bytes"] = problem.lower_bound;
    throw infeasible_failure(problem, arguments.search.find(), arguments.search.options().scope, solution.peak_bound,
                             least, std::move(json));
  }
  if (task.max_cost)
    throw Failure(kNotFound,
                  fmt::format("found no schedule of '{}' that costs no more than {}; raise --max-cost or --time-limit",
                              problem.name, *task.max_cost),
                  std::move(json));
  const std::string written =
      arguments.output.empty() ? "" : fmt::format("; the best so far was written to '{}'", arguments.output);
  if (answer.plan_alone_misses(problem.budget))
    throw Failure(
        kNotFound,
        fmt::format("found no schedule of '{}' whose plan fits into {} bytes{}: the lowest plan needs {} bytes; raise "
                    "--budget or --time-limit, or ask for --peak-only{}",
                    problem.name, *problem.budget, rounding_text(problem), answer.plan->bytes, written),
        std::move(json));
  Failure failure = not_found_failure(problem, least, std::move(json));
  if (!answer.plan) throw failure;
  throw Failure(
      kNotFound,
      fmt::format("{}; the best so far is planned with {} bytes{}", failure.what(), answer.plan->bytes, written),
      std::move(failure.details));
}

int solve(const SolveArguments& arguments) {
  const auto& solver = arguments.search.find();
  solvers::SolveOptions options = arguments.search.options();
  require_outputs({{"-o", arguments.output}, {"--plan", arguments.plan}, {"--sweep", arguments.sweep}},
                  {arguments.graph.input(), {"--td", arguments.td}, {"--start", arguments.start.path}});
  check_tw_outputs(arguments, options);
  const auto accelerator = pipeline::open_accelerator(arguments.backend);
  options.accelerator = accelerator.get();
  Task task = task_of(arguments);
  const core::Graph& graph = task.problem.graph;
  const bool rounded = task.objective == Objective::within_budget || task.objective == Objective::knee;
  const auto simulator =
      accelerator ? pipeline::open_simulator(arguments.backend, rounded ? task.rounded.graph : graph) : nullptr;
  options.simulator = simulator.get();
  std::optional<solvers::TreeDecomposition> decomposition;
  if (!arguments.td.empty()) {
    decomposition = solvers::parse_td(core::read_file(arguments.td), arguments.td, graph, {.stop = &catch_interrupt()});
    options.decomposition = &*decomposition;
  }
  const std::optional<core::Schedule> start = arguments.start.load(graph, options.scope);
  options.start = start ? &*start : nullptr;
  require_affordable(task);
  if (!arguments.sweep.empty()) return write_tw_curve(arguments.console, task.problem, options, arguments.sweep);
  if (arguments.stream) return stream_tw_schedule(arguments.console, task.problem, options, arguments.output);
  options.limit = from_start(options.limit);
  const core::Stopwatch watch(options.limit);
  Answer answer = search(task, solver, options, arguments.console);
  // Interrupted before anything was found: the baseline is the best schedule known.
  if (catch_interrupt() && !answer.has_schedule()) {
    answer.found.solution.status = solvers::Status::not_found;
    answer.found.solution.schedule = core::baseline_schedule(graph);
    plan_found(task, options, answer);
  }
  write(task, arguments, answer);

  const pipeline::Problem failed = searched(task, answer);
  const bool exact = task.objective == Objective::within_peak || task.objective == Objective::within_cost ||
                     task.objective == Objective::least_peak || task.rounded.same_sizes(task.problem);
  if (exact) task.problem.lower_bound = std::max(task.problem.lower_bound, answer.found.solution.peak_bound.value);
  solvers::SolveOptions quick = arguments.search.options();
  quick.limit.seconds = watch.rest().seconds;
  const pipeline::LeastBudget least =
      pipeline::least_feasible(answer.success ? task.problem : failed, solver, answer.found.solution, quick);
  Json json = to_json(task, arguments, answer, least);
  if (catch_interrupt()) {
    const std::int64_t peak = core::evaluate(failed.graph, answer.found.solution.schedule).peak;
    throw Failure(kInterrupted, "interrupted; " + best_so_far(failed, peak, arguments.output), std::move(json));
  }
  if (!answer.success) fail(failed, task, arguments, answer, least, std::move(json));
  arguments.console.print(json, arguments.console.json ? "" : table(task, arguments, answer));
  return kDone;
}

}  // namespace

Subcommand add_solve(CLI::App& root) {
  CLI::App* app = root.add_subcommand("solve", "find a schedule under a memory budget");
  auto arguments = std::make_shared<SolveArguments>();
  arguments->console.add_to(*app);
  add_budget(
      *app, arguments->budget,
      "bytes of the plan: 1.5GiB, 200MB, 12345, or 80% of the baseline peak; min: the least peak. Absent: the knee "
      "of the curve from memory to cost, or the least peak with a --solver other than auto");
  app->add_option("--max-cost", arguments->max_cost,
                  "the least peak for at most this cost: 10% above the baseline's, 1.1x, or a cost as 12345");
  arguments->search.add_to(*app, "10s");
  arguments->start.add_to(*app);
  app->add_option("-o,--output", arguments->output, "schedule file to write");
  app->add_option("--plan", arguments->plan, "plan file to write: where every tensor lives");
  app->add_option("--td", arguments->td,
                  "PACE .td file: the tree decomposition of the graph that the solver is to use");
  app->add_option("--backend", arguments->backend, "host, cuda or auto: where large tables of solvers are filled")
      ->capture_default_str();
  app->add_flag("--peak-only", arguments->peak_only,
                "the budget is on the peak of the schedule, whatever the height of its plan");
  app->add_option("--sweep", arguments->sweep,
                  "CSV file to write, with --solver tw: peak, steps and cost of TWRemat(k) for k from n to 1");
  app->add_flag(
      "--stream", arguments->stream,
      "with --solver tw --option k=K: write TWRemat(K) to -o step by step, however long it is, without a plan");
  arguments->alignment.add_to(*app);
  arguments->graph.add_to(*app);
  std::string footer = "Solvers:\n";
  for (const auto& info : solvers::registry()) {
    const std::string graphs = info.graphs == "any" ? "" : fmt::format("; {} graphs only", info.graphs);
    footer += fmt::format("  {:<12} {}{}\n", info.name, info.guarantee, graphs);
  }
  app->footer(footer +
              "Examples:\n"
              "  cairn solve graph.json --budget 80% -o s.json\n"
              "  cairn solve graph.json --budget 80% --start s.json -o s.json     from there on\n"
              "  cairn solve graph.json --max-cost 5%\n"
              "  cairn solve resnet50 --batch 8 --solver tw --budget 1.5GiB --time-limit 30s --json");
  return {app, [arguments] { return solve(*arguments); }};
}

}  // namespace cairn::cli
