#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "cairn/cli/backend.h"
#include "cairn/cli/common.h"
#include "cairn/cli/execute.h"
#include "cairn/cli/fit.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/text.h"
#include "cairn/core/version.h"
#include "cairn/pipeline/report/html_report.h"
#include "cairn/runtime/program.h"
#include "cairn/solvers/plan/planner.h"

namespace cairn::cli {
namespace {

constexpr std::int64_t kGuardBytes = 256;

struct RunArguments {
  Console console;
  GraphSource source;
  Search search;
  BackendChoice backend;
  std::string budget, schedule, report, trace, output, plan;
  std::int64_t alignment = 256;
  int repeats = 1;
  bool poison = false, sentinels = false, check = false;

  solvers::PlanOptions plan_options() const {
    solvers::PlanOptions options;
    options.alignment = alignment;
    return options;
  }
  std::int64_t guard_bytes() const { return sentinels ? kGuardBytes : 0; }
};

/// A schedule with its plan, and who made it.
struct Decision {
  std::string solver;
  core::Schedule schedule;
  core::Plan plan;                  ///< the one executed: with guards, if asked for
  std::int64_t budgeted_bytes = 0;  ///< of the plan without guards, which the budget is on
  core::Evaluation evaluation;      ///< on the graph as given
  std::int64_t predicted_peak = 0;  ///< with sizes rounded up to the alignment: what the plan needs at least
  Json search = Json::object();
  std::vector<solvers::Tradeoff> tradeoffs;  ///< that the search met
};

Decision decide(const core::Graph& graph, std::string solver, core::Schedule schedule, core::Plan plan,
                const RunArguments& arguments) {
  Decision decision;
  decision.solver = std::move(solver);
  decision.schedule = std::move(schedule);
  decision.plan = std::move(plan);
  decision.budgeted_bytes = decision.plan.bytes;
  if (arguments.guard_bytes() > 0) {
    solvers::PlanOptions options = arguments.plan_options();
    options.guard_bytes = arguments.guard_bytes();
    decision.plan = solvers::plan_memory(graph, decision.schedule, options);
  }
  decision.evaluation = core::evaluate(graph, decision.schedule);
  decision.predicted_peak = core::evaluate(core::align_sizes(graph, arguments.alignment), decision.schedule).peak;
  return decision;
}

Decision plan_baseline(const core::Graph& graph, const RunArguments& arguments) {
  core::Schedule schedule = core::baseline_schedule(graph);
  core::Plan plan = solvers::plan_memory(graph, schedule, arguments.plan_options());
  return decide(graph, "baseline", std::move(schedule), std::move(plan), arguments);
}

/// A schedule made for the graph as it was given, or as this backend executes it, which may differ in scratch.
core::ScheduleFile load_schedule(const PreparedGraph& graph, const RunArguments& arguments) {
  if (graph.given.fingerprint() == graph.prepared.fingerprint())
    return core::load_schedule(arguments.schedule, graph.given);
  try {
    return core::load_schedule(arguments.schedule, graph.prepared);
  } catch (const core::InputError&) {
    return core::load_schedule(arguments.schedule, graph.given);
  }
}

Decision read_decision(const Problem& problem, const PreparedGraph& graph, const RunArguments& arguments) {
  auto file = load_schedule(graph, arguments);
  core::Plan plan = solvers::plan_memory(problem.graph, file.schedule, arguments.plan_options());
  if (problem.budget && plan.bytes > *problem.budget)
    throw Failure(kNotFound,
                  fmt::format("'{}' needs {} bytes as planned, more than the budget of {} bytes; raise --budget",
                              arguments.schedule, plan.bytes, *problem.budget));
  return decide(problem.graph, file.solver.empty() ? "unknown" : file.solver, std::move(file.schedule), std::move(plan),
                arguments);
}

/// For the graph as it was given: a schedule does not depend on the scratch of this backend's kernels.
void write_schedule(const core::Graph& given, const RunArguments& arguments, const core::Schedule& schedule,
                    const std::string& solver) {
  if (!arguments.output.empty()) core::write_file(arguments.output, core::schedule_to_json(given, schedule, solver));
}

/// `rounded` is the problem that was searched: its sizes are rounded up, so what does not fit may be the rounding.
[[noreturn]] void explain_no_fit(const Problem& problem, Problem rounded, const RunArguments& arguments,
                                 const Fit& fit) {
  rounded.lower_bound = std::max(rounded.lower_bound, fit.solution.peak_bound.value);
  Json details = problem.describe();
  details["baseline_peak_bytes"] = rounded.baseline.peak;
  details["lower_bound_peak_bytes"] = rounded.lower_bound;
  details["alignment"] = arguments.alignment;
  details["solver"] = arguments.search.solver;
  const bool planned = fit.planned();
  details["status"] = planned ? "not_found" : solvers::to_string(fit.solution.status);
  details["least_planned_bytes"] = planned ? Json(fit.plan.bytes) : Json(nullptr);
  if (planned)
    throw Failure(
        kNotFound,
        fmt::format("found no schedule of '{}' whose plan fits into {} bytes{}: the lowest plan needs {} bytes; "
                    "raise --budget or --time-limit",
                    problem.name, *problem.budget, rounded.rounding, fit.plan.bytes),
        std::move(details));
  const std::int64_t least = least_feasible(rounded, fit.solution, arguments.search);
  details["least_feasible_bytes"] = least;
  if (fit.solution.status == solvers::Status::infeasible)
    throw infeasible_failure(rounded, arguments.search.find(), fit.solution.scope, least, std::move(details));
  throw not_found_failure(rounded, least, std::move(details));
}

Decision search_decision(const Problem& problem, const core::Graph& given, const RunArguments& arguments) {
  Problem rounded = problem.rounded_up(arguments.alignment);
  solvers::SolveOptions options = arguments.search.options();
  Fit fit;
  const core::Stopwatch watch(options.limit);
  {
    ProgressLine line(arguments.console, problem, options.limit.seconds);
    options.progress = line.callback();
    fit = fit_to_budget(problem.graph, rounded.graph, *problem.budget, arguments.search.find(), options,
                        arguments.plan_options());
  }
  if (fit.planned()) require_sound(arguments.search.solver, rounded.graph, fit.solution);
  if (catch_interrupt()) {
    const bool none = fit.solution.schedule.steps.empty();
    const auto schedule = none ? core::baseline_schedule(problem.graph) : fit.solution.schedule;
    write_schedule(given, arguments, schedule, arguments.search.solver);
    const std::int64_t peak = core::evaluate(rounded.graph, schedule).peak;
    throw Failure(
        kInterrupted,
        "interrupted during the search, nothing was executed; " + best_so_far(rounded, peak, arguments.output),
        problem.describe());
  }
  if (!fit.fits()) explain_no_fit(problem, std::move(rounded), arguments, fit);
  Decision decision =
      decide(problem.graph, arguments.search.solver, fit.solution.schedule, std::move(fit.plan), arguments);
  decision.search = {{"status", solvers::to_string(fit.solution.status)},
                     {"solve_seconds", watch.seconds()},
                     {"solver_rounds", fit.rounds}};
  decision.tradeoffs = std::move(fit.solution.tradeoffs);
  return decision;
}

Execution execute_decision(Backend& backend, core::Precision precision, const core::Graph& graph,
                           const Decision& decision, const RunArguments& arguments) {
  return backend.execute({.graph = graph,
                          .schedule = decision.schedule,
                          .plan = decision.plan,
                          .precision = precision,
                          .seed = arguments.search.seed,
                          .guard_bytes = arguments.guard_bytes(),
                          .poison = arguments.poison,
                          .repeats = arguments.repeats});
}

/// Compares with the graph as it was given, executed by the host in fp32.
Closeness check_with_host(const PreparedGraph& graph, core::Precision precision, const Execution& execution,
                          const RunArguments& arguments) {
  const auto host = open_host_backend();
  const core::Graph reference = host->prepare(graph.given, core::Precision::fp32);
  solvers::PlanOptions options = arguments.plan_options();
  options.limit.work = 0;
  const core::Schedule schedule = core::baseline_schedule(reference);
  const core::Plan plan = solvers::plan_memory(reference, schedule, options);
  ExecuteRequest request{.graph = reference, .schedule = schedule, .plan = plan, .seed = arguments.search.seed};
  const Execution expected = host->execute(request);
  request.rounding_noise = rounding_of(precision);
  return compare_close(graph.prepared, execution, expected, host->execute(request), precision);
}

Json describe(const Closeness& closeness) {
  return {{"outputs", closeness.outputs},
          {"undecided", closeness.undecided},
          {"worst_output", closeness.worst_output},
          {"worst_error", closeness.worst_error},
          {"allowed_error", closeness.worst_allowed},
          {"passed", closeness.close}};
}

std::string host_check_text(const Json& check) {
  if (check.is_null()) return "";
  const auto undecided = check["undecided"].get<std::int64_t>();
  const std::string rest =
      undecided > 0 ? fmt::format("; {} too sensitive to rounding to be compared", undecided) : std::string();
  if (check["worst_output"].get<std::string>().empty())
    return fmt::format("{} kept outputs have the host's bits{}\n", check["outputs"].get<std::int64_t>() - undecided,
                       rest);
  return fmt::format("{} kept outputs agree with the host's; the worst, '{}', within {:.1e} (allowed {:.1e}){}\n",
                     check["outputs"].get<std::int64_t>() - undecided, check["worst_output"].get<std::string>(),
                     check["worst_error"].get<double>(), check["allowed_error"].get<double>(), rest);
}

double percent_above(double value, double base) { return 100 * (value / std::max(base, 1e-12) - 1); }

Json describe(const Decision& decision, const Execution& execution) {
  Json json;
  json["peak_bytes"] = decision.evaluation.peak;
  json["predicted_peak_bytes"] = decision.predicted_peak;
  json["planned_bytes"] = decision.plan.bytes;
  json["measured_peak_bytes"] = execution.report.measured_peak_bytes;
  json["live_peak_bytes"] = execution.report.live_peak_bytes;
  json["cost"] = decision.evaluation.cost;
  json["predicted_seconds"] = static_cast<double>(decision.evaluation.cost) / 1e9;
  json["seconds"] = execution.report.seconds;
  json["op_seconds_sum"] = std::accumulate(execution.report.op_seconds.begin(), execution.report.op_seconds.end(), 0.0);
  json["steps"] = decision.schedule.length();
  json["recomputed"] = decision.evaluation.recomputed;
  return json;
}

std::string comparison_text(const Comparison& comparison) {
  if (comparison.outputs == 0) return "nothing to compare: the graph has no outputs\n";
  const std::int64_t kept = comparison.outputs - comparison.sinks;
  std::vector<std::string> parts;
  if (kept > 0)
    parts.push_back(
        fmt::format("{} kept outputs ({}) compared bit by bit", kept, core::format_bytes(comparison.bytes)));
  if (comparison.sinks > 0)
    parts.push_back(fmt::format("{} outputs that nobody reads or keeps compared by digest", comparison.sinks));
  return fmt::format("{}: identical\n", fmt::join(parts, ", "));
}

std::string table(const Problem& problem, const Json& json, const Comparison& comparison, const Decision& baseline,
                  const Execution& baseline_run, const Decision& decision, const Execution& run) {
  const auto bytes = [](std::int64_t a, std::int64_t b) {
    return std::vector<std::string>{core::format_bytes(a), core::format_bytes(b),
                                    fmt::format("{:+.1f}%", increase_pct(b, a))};
  };
  std::vector<std::vector<std::string>> rows = {{"", "baseline", "schedule", "change"}};
  const auto add = [&](std::string name, std::vector<std::string> cells) {
    cells.insert(cells.begin(), std::move(name));
    rows.push_back(std::move(cells));
  };
  add("predicted peak", bytes(baseline.predicted_peak, decision.predicted_peak));
  add("planned", bytes(baseline.plan.bytes, decision.plan.bytes));
  add("measured", bytes(baseline_run.report.measured_peak_bytes, run.report.measured_peak_bytes));
  add("cost", {std::to_string(baseline.evaluation.cost), std::to_string(decision.evaluation.cost),
               fmt::format("{:+.2f}%", increase_pct(decision.evaluation.cost, baseline.evaluation.cost))});
  add("steps", {std::to_string(baseline.schedule.length()), std::to_string(decision.schedule.length()),
                fmt::format("{} recomputed", decision.evaluation.recomputed)});
  const auto milliseconds = [&](std::string name, double before, double after) {
    add(std::move(name), {fmt::format("{:.3f} ms", before * 1e3), fmt::format("{:.3f} ms", after * 1e3),
                          fmt::format("{:+.1f}%", percent_above(after, before))});
  };
  milliseconds("predicted time", static_cast<double>(baseline.evaluation.cost) / 1e9,
               static_cast<double>(decision.evaluation.cost) / 1e9);
  milliseconds("time", baseline_run.report.seconds, run.report.seconds);

  std::string text =
      fmt::format("{}: {} nodes, {} edges, on {} ({})\n", problem.name, problem.graph.node_count(),
                  problem.graph.edge_count(), json["backend"].get<std::string>(), json["device"].get<std::string>());
  if (problem.budget)
    text += fmt::format("budget {}, solver {}; resident {} beside the budget\n", bytes_text(*problem.budget),
                        decision.solver, core::format_bytes(problem.graph.resident_bytes()));
  text += "\n" + format_table(rows, true) + "\n";
  if (!json["loss"].is_null()) text += fmt::format("loss {:.6g}\n", json["loss"].get<double>());
  if (json["guard_bytes"].get<std::int64_t>() > 0)
    text += fmt::format("planned with guards; without them, as the budget counts, {}\n",
                        bytes_text(decision.budgeted_bytes));
  text += host_check_text(json["host_check"]);
  return text + comparison_text(comparison);
}

core::ReportRun report_run(const core::Graph& graph, const Decision& decision, const Execution& execution) {
  core::ReportRun run;
  run.predicted_peak_bytes = decision.predicted_peak;
  run.cost = decision.evaluation.cost;
  run.planned_bytes = decision.plan.bytes;
  run.measured_peak_bytes = execution.report.measured_peak_bytes;
  run.seconds = execution.report.seconds;
  run.steps = decision.schedule.length();
  run.recomputed = decision.evaluation.recomputed;
  run.memory = core::memory_curve(graph, decision.schedule);
  return run;
}

std::string report_page(const Problem& problem, const Backend& backend, const Decision& baseline,
                        const Execution& baseline_run, const Decision& decision, const Execution& scheduled_run,
                        bool identical) {
  const core::Graph& graph = problem.graph;
  core::ReportData data;
  data.graph = problem.name;
  data.solver = decision.solver;
  data.device = backend.device();
  data.version = core::kVersion;
  data.nodes = graph.node_count();
  data.edges = graph.edge_count();
  data.resident_bytes = graph.resident_bytes();
  data.budget_bytes = problem.budget;
  data.identical = identical;
  data.baseline = report_run(graph, baseline, baseline_run);
  data.scheduled = report_run(graph, decision, scheduled_run);
  data.buffers = core::report_buffers(graph, decision.schedule, decision.plan);
  data.arena_bytes = decision.plan.bytes;
  for (const auto& [peak, cost] : decision.tradeoffs) data.pareto.push_back({peak, cost});
  return core::html_report(data);
}

int run(const RunArguments& arguments) {
  if (arguments.budget.empty() && arguments.schedule.empty())
    throw core::InputError("run needs --budget, as 1.5GiB or 50%, or --schedule s.json");
  if (!arguments.schedule.empty() && arguments.search.names_solver())
    throw core::InputError("--schedule runs a schedule as it is and --solver searches one; drop either");
  require_outputs({{"-o", arguments.output},
                   {"--plan", arguments.plan},
                   {"--report", arguments.report},
                   {"--trace", arguments.trace}},
                  {arguments.source.input(), {"--schedule", arguments.schedule}});
  const auto backend = open_backend(arguments.backend.backend);
  arguments.search.find();
  const PreparedGraph graph = prepare_graph(arguments.source, *backend, arguments.backend);
  const core::Precision precision = graph.precision;
  if (arguments.check && core::stores_bf16(graph.given))
    throw core::InputError(
        "--check compares with the host, which executes fp32 only; give the graph in fp32 and "
        "--precision bf16");
  const Problem problem(graph.prepared, arguments.source.name, arguments.budget);
  const Decision decision = arguments.schedule.empty() ? search_decision(problem, graph.given, arguments)
                                                       : read_decision(problem, graph, arguments);
  write_schedule(graph.given, arguments, decision.schedule, decision.solver);
  if (!arguments.plan.empty()) core::write_file(arguments.plan, core::plan_to_json(problem.graph, decision.plan));

  catch_interrupt();
  const Decision baseline = plan_baseline(problem.graph, arguments);
  const Execution baseline_run = execute_decision(*backend, precision, problem.graph, baseline, arguments);
  const Execution scheduled_run = execute_decision(*backend, precision, problem.graph, decision, arguments);
  const Comparison comparison = compare(problem.graph, baseline_run, scheduled_run);

  Json json = problem.describe();
  json["solver"] = decision.solver;
  json.update(decision.search);
  json["backend"] = backend->name();
  json["device"] = backend->device();
  if (const std::string note = backend->note(); !note.empty()) json["note"] = note;
  json["precision"] = core::to_string(precision);
  json["alignment"] = arguments.alignment;
  json["guard_bytes"] = arguments.guard_bytes();
  json["baseline"] = describe(baseline, baseline_run);
  json["scheduled"] = describe(decision, scheduled_run);
  json["scheduled"]["cost_increase_pct"] = increase_pct(decision.evaluation.cost, baseline.evaluation.cost);
  json["scheduled"]["time_increase_pct"] = percent_above(scheduled_run.report.seconds, baseline_run.report.seconds);
  const auto loss = loss_of(problem.graph, scheduled_run);
  json["loss"] = loss ? Json(*loss) : Json(nullptr);
  json["identical"] = comparison.identical();
  json["outputs_compared"] = comparison.outputs;
  json["bytes_compared"] = comparison.bytes;
  json["host_check"] = nullptr;
  if (arguments.check) {
    const Closeness closeness = check_with_host(graph, precision, scheduled_run, arguments);
    json["host_check"] = describe(closeness);
    if (!closeness.close)
      throw Failure(kDefect,
                    fmt::format("output '{}' differs from the host's by {:.2e} of its norm, and rounding explains no "
                                "more than {:.2e}; please report this",
                                closeness.worst_output, closeness.worst_error, closeness.worst_allowed),
                    std::move(json));
  }

  if (!arguments.trace.empty()) {
    std::vector<double> op_ns;
    for (const double seconds : scheduled_run.report.op_seconds) op_ns.push_back(seconds * 1e9);
    core::write_file(arguments.trace, core::perfetto_trace(problem.graph, decision.schedule, decision.plan, op_ns));
  }
  if (!arguments.report.empty())
    core::write_file(arguments.report, report_page(problem, *backend, baseline, baseline_run, decision, scheduled_run,
                                                   comparison.identical()));
  if (!comparison.identical())
    throw Failure(kDefect,
                  fmt::format("{} of {} outputs differ from the baseline's, first '{}'; please report this",
                              comparison.different.size(), comparison.outputs, comparison.different.front()),
                  std::move(json));
  arguments.console.print(
      json,
      arguments.console.json ? "" : table(problem, json, comparison, baseline, baseline_run, decision, scheduled_run));
  return kDone;
}

}  // namespace

Subcommand add_run(CLI::App& root) {
  CLI::App* app = root.add_subcommand("run", "execute a graph under a memory budget and compare it with the baseline");
  auto arguments = std::make_shared<RunArguments>();
  arguments->console.add_to(*app);
  add_budget(*app, arguments->budget, "bytes of the arena: 1.5GiB, 200MB, 12345 or 50% of the baseline peak");
  arguments->search.add_to(*app, "20s");
  app->add_option("--schedule", arguments->schedule, "run this schedule file instead of searching one");
  arguments->backend.add_to(*app);
  app->add_option("--report", arguments->report, "HTML page to write: memory over time, the plan, the table");
  app->add_option("--trace", arguments->trace, "Chrome/Perfetto trace to write, with measured times");
  app->add_option("-o,--output", arguments->output, "schedule file to write");
  app->add_option("--plan", arguments->plan, "plan file to write");
  app->add_option("--alignment", arguments->alignment, "bytes that sizes and offsets are multiples of")
      ->capture_default_str()
      ->check(at_least_one());
  app->add_option("--repeat", arguments->repeats,
                  "executions of baseline and schedule; the median time is reported, of several without the first")
      ->capture_default_str()
      ->check(at_least_one());
  app->add_flag("--poison", arguments->poison, "overwrite every buffer when it dies: a read after free shows");
  app->add_flag(
      "--check", arguments->check,
      "compare every kept output with the host's in fp32; what may differ is measured by disturbing the host");
  app->add_flag("--sentinels", arguments->sentinels,
                "check a guard behind every buffer after each step; the guards add to the arena, beside the budget");
  arguments->source.add_to(*app);
  app->footer(
      "Examples:\n"
      "  cairn run resnet50 --batch 8 --image 64 --budget 50%\n"
      "  cairn run unet --budget 60% --report unet.html --trace unet.trace.json\n"
      "  cairn run graph.json --schedule s.json --poison --sentinels");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace cairn::cli
