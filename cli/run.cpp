#include "cairn/pipeline/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "cairn/cli/arguments.h"
#include "cairn/cli/batch.h"
#include "cairn/cli/explain.h"
#include "cairn/cli/objective.h"
#include "cairn/cli/output.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/text.h"
#include "cairn/core/threads.h"
#include "cairn/pipeline/backend.h"
#include "cairn/pipeline/objective.h"
#include "cairn/pipeline/solve.h"

namespace cairn::cli {
namespace {

constexpr std::int64_t kGuardBytes = 256;
/// Of the time limit, what the search leaves to execute more than once.
constexpr double kMostToExecute = 0.5;  ///< of the limit

struct RunArguments {
  Console console;
  GraphArguments graph;
  SolverArguments search;
  BackendChoice backend;
  ObjectiveArguments objective;
  std::string schedule, report, trace, output, plan;
  StartArgument start;
  AlignmentChoice alignment;
  int repeats = 0;  ///< 0: as many as pipeline::run finds good
  bool poison = false, sentinels = false, check = false, explain = false;

  solvers::PlanOptions plan_options(const core::Graph& executed) const {
    solvers::PlanOptions options;
    options.alignment = alignment.of(executed);
    options.guard_bytes = sentinels ? kGuardBytes : 0;
    return options;
  }
};

/// What is executed, and how it was found where it was searched.
struct Choice {
  pipeline::Decision decision;
  std::optional<pipeline::Answer> answer;

  std::vector<solvers::Tradeoff> tradeoffs() const {
    return answer ? answer->found.solution.tradeoffs : std::vector<solvers::Tradeoff>();
  }
};

/// For the graph as it was given: a schedule does not depend on the scratch of this backend's kernels.
void write_schedule(const core::Graph& given, const RunArguments& arguments, const core::Schedule& schedule,
                    const std::string& solver) {
  if (!arguments.output.empty()) core::write_file(arguments.output, core::schedule_to_json(given, schedule, solver));
}

/// A schedule made for the graph as it was given, or as this backend executes it, which may differ in scratch.
Choice read_choice(const pipeline::Problem& problem, const core::Graph& given, const RunArguments& arguments) {
  auto file = core::load_schedule(arguments.schedule, given, problem.graph.fingerprint(), reading(arguments.schedule));
  Choice choice{pipeline::decide_on(problem.graph, file.solver.empty() ? "unknown" : file.solver,
                                    std::move(file.schedule), arguments.plan_options(problem.graph)),
                {}};
  if (problem.budget && choice.decision.budgeted_bytes > *problem.budget)
    throw Failure(kNotFound, fmt::format("'{}' needs {} as planned, more than the budget of {}; {}; raise --budget",
                                         core::input_name(arguments.schedule),
                                         baseline_share_text(problem, choice.decision.budgeted_bytes, true),
                                         baseline_share_text(problem, *problem.budget), bound_text(problem)));
  return choice;
}

[[noreturn]] void explain_no_answer(const pipeline::Task& task, const RunArguments& arguments,
                                    const pipeline::Answer& answer) {
  const pipeline::Problem failed = pipeline::problem_of_failure(task, answer);
  solvers::SolveOptions search = arguments.search.options();
  search.limit = until_answer(search.limit, task.problem.graph);
  const pipeline::LeastBudget least = pipeline::least_budget_after(task, answer, arguments.search.find(), search);
  Json details = describe(failed);
  details["alignment"] = task.alignment;
  details["solver"] = arguments.search.solver;
  add_proof(details, task, answer);
  const bool planned = answer.plan && answer.plan_alone_misses(failed.budget);
  details["least_planned_bytes"] = planned ? Json(answer.plan->bytes) : Json(nullptr);
  add_limits(details, failed, least);
  throw failure_of(task, arguments.search, answer, least, "", "", std::move(details));
}

/// `executing`: seconds to keep for executions.
Choice search_choice(const pipeline::Task& task, const core::Graph& given, const RunArguments& arguments,
                     double executing) {
  const core::Graph& graph = task.problem.graph;
  solvers::SolveOptions search = arguments.search.options();
  const std::optional<core::Schedule> start = arguments.start.load(given, search.scope, graph.fingerprint());
  search.start = start ? &*start : nullptr;
  search.limit = until_answer(search.limit, task.problem.graph);
  search.limit.seconds -= std::min(executing, kMostToExecute * search.limit.seconds);
  pipeline::Answer answer;
  {
    ProgressLine line(arguments.console);
    search.progress = line.of_search(task.problem, search.limit.seconds);
    answer = pipeline::search(task, arguments.search.find(), search);
  }
  const core::Schedule& schedule = answer.found.solution.schedule;
  if (catch_interrupt()) {
    write_schedule(given, arguments, schedule, arguments.search.solver);
    const pipeline::Problem& searched = task.searched();
    const std::int64_t peak = core::evaluate(searched.graph, schedule).peak;
    throw Failure(
        kInterrupted,
        "interrupted during the search, nothing was executed; " + best_so_far(searched, peak, arguments.output),
        describe(task.problem));
  }
  if (!answer.success) explain_no_answer(task, arguments, answer);
  auto decision =
      pipeline::decide_on(graph, arguments.search.solver, schedule, arguments.plan_options(graph), answer.plan);
  return {std::move(decision), std::move(answer)};
}

double percent_above(double value, double base) { return 100 * (value / std::max(base, 1e-12) - 1); }

Json to_json(const pipeline::Closeness& closeness) {
  return {{"outputs", closeness.outputs},
          {"undecided", closeness.undecided},
          {"worst_output", closeness.worst_output},
          {"worst_error", closeness.worst_error},
          {"allowed_error", closeness.worst_allowed},
          {"passed", closeness.close}};
}

Json to_json(const core::Graph& graph, const pipeline::Decision& decision, const pipeline::Execution& execution) {
  const runtime::StepReport& report = execution.report;
  const pipeline::Spread spread = pipeline::spread_of(execution);
  return {{"peak_bytes", decision.evaluation.peak},
          {"predicted_peak_bytes", decision.predicted_peak},
          {"planned_bytes", decision.plan.bytes},
          {"measured_peak_bytes", report.measured_peak_bytes},
          {"live_peak_bytes", report.live_peak_bytes},
          {"cost", decision.evaluation.cost},
          {"predicted_seconds", or_null(pipeline::predicted_seconds(graph, decision))},
          {"seconds", report.seconds},
          {"seconds_min", spread.least},
          {"seconds_max", spread.most},
          {"executions", execution.timings.size()},
          {"disturbed_executions", spread.disturbed},
          {"op_seconds_sum", std::accumulate(report.op_seconds.begin(), report.op_seconds.end(), 0.0)},
          {"steps", decision.schedule.length()},
          {"recomputed", decision.evaluation.recomputed}};
}

/// Everything that a run is reported from.
struct Run {
  const RunArguments& arguments;
  const pipeline::Task& task;
  const pipeline::Problem& problem;
  const pipeline::Backend& backend;
  core::Precision precision;
  const Choice& choice;
  const pipeline::RunResult& result;
};

/// Where the costs come from that predict times.
std::string predicted_by(const core::Graph& graph) {
  const core::CostUnit& unit = graph.cost_unit();
  if (!unit.source.empty()) return unit.source;
  return unit.known() ? fmt::format("costs in {} of the graph's file", unit.name) : "costs of the graph's file";
}

Json to_json(const Run& run) {
  const pipeline::Decision &decision = run.choice.decision, &baseline = run.result.baseline;
  Json json = describe(run.problem);
  json["solver"] = decision.solver;
  if (const auto& answer = run.choice.answer) {
    add_proof(json, run.task, *answer);
    json["solve_seconds"] = answer->found.seconds;
    json["solver_rounds"] = answer->rounds;
  }
  json["backend"] = run.backend.name();
  json["device"] = run.backend.device();
  json["threads"] = core::thread_count();
  std::vector<std::string> notes = pipeline::notes_of(run.problem.graph, run.result);
  if (const std::string note = run.backend.note(); !note.empty()) notes.insert(notes.begin(), note);
  if (!notes.empty()) json["note"] = fmt::format("{}", fmt::join(notes, "; "));
  json["kernels"] = pipeline::kernels_of(run.problem.graph);
  json["synthetic_nodes"] = pipeline::synthetic_nodes(run.problem.graph);
  json["precision"] = core::to_string(run.precision);
  json["alignment"] = decision.plan.alignment;
  json["guard_bytes"] = decision.guard_bytes;
  json["predicted_by"] = predicted_by(run.problem.graph);
  json["predicts_this_machine"] = pipeline::predicts(run.problem.graph, run.backend, run.precision);
  json["timing"] = {{"text", pipeline::timing_text(run.result)},
                    {"executions", run.result.baseline_run.timings.size()},
                    {"warm_ups", run.result.warmed_up ? 1 : 0},
                    {"interleaved", run.result.interleaved}};
  json["baseline"] = to_json(run.problem.graph, baseline, run.result.baseline_run);
  json["scheduled"] = to_json(run.problem.graph, decision, run.result.scheduled_run);
  json["scheduled"]["cost_increase_pct"] = increase_pct(decision.evaluation.cost, baseline.evaluation.cost);
  json["scheduled"]["time_increase_pct"] =
      percent_above(run.result.scheduled_run.report.seconds, run.result.baseline_run.report.seconds);
  json["loss"] = or_null(run.result.loss);
  json["identical"] = run.result.comparison.identical();
  json["compared"] = pipeline::compared_text(run.result.comparison);
  json["outputs_compared"] = run.result.comparison.outputs;
  json["digests_compared"] = run.result.comparison.digests();
  json["bytes_compared"] = run.result.comparison.bytes;
  json["host_check"] = run.result.host_check ? to_json(*run.result.host_check) : Json(nullptr);
  return json;
}

std::string host_check_text(const pipeline::Closeness& check) {
  const std::int64_t decided = check.outputs - check.undecided;
  const std::string rest =
      check.undecided > 0 ? fmt::format("; {} too sensitive to rounding to be compared", check.undecided) : "";
  if (check.worst_output.empty()) return fmt::format("{} kept outputs have the host's bits{}\n", decided, rest);
  return fmt::format("{} kept outputs agree with the host's; the worst, '{}', within {:.1e} (allowed {:.1e}){}\n",
                     decided, check.worst_output, check.worst_error, check.worst_allowed, rest);
}

std::string comparison_text(const pipeline::Comparison& comparison) {
  if (comparison.outputs == 0) return "nothing to compare: the graph has no outputs\n";
  return fmt::format("compared {}: identical\n", pipeline::compared_text(comparison));
}

/// "+8.7%" of two times.
std::string percent_text(double before, double after) { return fmt::format("{:+.1f}%", percent_above(after, before)); }

/// The prediction of costs that are times, of another machine than the one that executed.
std::string prediction_text(const Run& run) {
  const core::Graph& graph = run.problem.graph;
  const auto before = pipeline::predicted_seconds(graph, run.result.baseline);
  const auto after = pipeline::predicted_seconds(graph, run.choice.decision);
  if (!before || pipeline::predicts(graph, run.backend, run.precision)) return "";
  return fmt::format("predicted by the graph's costs: {}, then {} ({}); they are of another machine: {}\n",
                     core::duration_text(*before), core::duration_text(*after), percent_text(*before, *after),
                     predicted_by(graph));
}

std::string table(const Run& run) {
  const pipeline::Decision &after = run.choice.decision, &before = run.result.baseline;
  const runtime::StepReport &after_run = run.result.scheduled_run.report, &before_run = run.result.baseline_run.report;
  Rows rows = {{"", "baseline", "schedule", "change"}};
  const auto bytes = [&](const char* name, std::int64_t a, std::int64_t b) {
    rows.push_back({name, core::format_bytes(a), core::format_bytes(b), fmt::format("{:+.1f}%", increase_pct(b, a))});
  };
  const auto times = [&](const char* name, double a, double b) {
    rows.push_back({name, core::duration_text(a), core::duration_text(b), percent_text(a, b)});
  };
  bytes("predicted peak", before.predicted_peak, after.predicted_peak);
  bytes("planned", before.plan.bytes, after.plan.bytes);
  bytes("measured", before_run.measured_peak_bytes, after_run.measured_peak_bytes);
  const core::Graph& graph = run.problem.graph;
  const auto cost = [&](const pipeline::Decision& decision) {
    return core::cost_text(decision.evaluation.cost, graph.cost_unit());
  };
  rows.push_back({"cost", cost(before), cost(after),
                  fmt::format("{:+.2f}%", increase_pct(after.evaluation.cost, before.evaluation.cost))});
  rows.push_back({"steps", std::to_string(before.schedule.length()), std::to_string(after.schedule.length()),
                  fmt::format("{} recomputed", after.evaluation.recomputed)});
  if (pipeline::predicts(graph, run.backend, run.precision))
    times("predicted time", *pipeline::predicted_seconds(graph, before), *pipeline::predicted_seconds(graph, after));
  times("time", before_run.seconds, after_run.seconds);
  const auto range = [](const pipeline::Execution& execution) {
    const pipeline::Spread spread = pipeline::spread_of(execution);
    return fmt::format("{} to {}", core::duration_text(spread.least), core::duration_text(spread.most));
  };
  if (run.result.baseline_run.timings.size() > 1)
    rows.push_back({"from, to", range(run.result.baseline_run), range(run.result.scheduled_run), ""});

  std::string text = fmt::format("{}: {} nodes, {} edges, on {} ({})\n", run.problem.name, graph.node_count(),
                                 graph.edge_count(), run.backend.name(), run.backend.device());
  if (run.problem.budget)
    text += fmt::format("budget {}, solver {}; resident {} beside the budget\n", bytes_text(*run.problem.budget),
                        after.solver, core::format_bytes(graph.resident_bytes()));
  text += "\n" + format_table(rows, true) + "\n";
  text += fmt::format("time: {}\n", pipeline::timing_text(run.result)) + prediction_text(run);
  for (const std::string& note : pipeline::notes_of(graph, run.result)) text += note + "\n";
  if (const auto& answer = run.choice.answer) {
    text += fmt::format("the search ended after {:.2f} s, {}\n", answer->found.seconds,
                        stop_text(answer->found.solution.stop));
    text += fmt::format("{}\n", fmt::join(proof_row(run.task, *answer), ": "));
  }
  if (run.result.loss) text += fmt::format("loss {:.6g}\n", *run.result.loss);
  if (after.guard_bytes > 0)
    text +=
        fmt::format("planned with guards; without them, as the budget counts, {}\n", bytes_text(after.budgeted_bytes));
  if (run.result.host_check) text += host_check_text(*run.result.host_check);
  return text + comparison_text(run.result.comparison);
}

/// Both executions of a run: a beginning before the search, the rest after it.
class Executing {
  auto with_line(const auto& work) {
    struct Shown {
      std::optional<ProgressLine>& line;
      ~Shown() { line.reset(); }
    } shown{line_};
    line_.emplace(console_);
    return work();
  }

 public:
  Executing(pipeline::Backend& backend, const pipeline::PreparedGraph& graph, const RunArguments& arguments)
      : console_(arguments.console),
        both_(backend, graph, arguments.plan_options(graph.prepared).alignment,
              arguments.plan_options(graph.prepared).guard_bytes, options(arguments)) {}

  /// Seconds to keep for what follows the search: the schedule has about a third more steps, and a few rounds of both
  /// are better than one.
  double begin(const core::Limit& limit) {
    constexpr double kMost = 0.2, kOfBaseline = 1.5, kRounds = 6, kShareOfRounds = 0.1;  // of the limit
    if (!std::isfinite(limit.seconds)) return 0;
    double seconds = 0;
    try {
      seconds = with_line([&] { return both_.warm_up(kMost * limit.seconds); });
    } catch (const core::InterruptedError&) {
      // The search says what is known by then.
    }
    return std::max(kOfBaseline * seconds, std::min(kRounds * seconds, kShareOfRounds * limit.seconds));
  }
  pipeline::RunResult finish(const pipeline::Decision& decision) {
    return with_line([&] { return both_.run(decision); });
  }

 private:
  pipeline::RunOptions options(const RunArguments& arguments) {
    pipeline::RunOptions options{.seed = arguments.search.seed,
                                 .poison = arguments.poison,
                                 .repeats = arguments.repeats,
                                 .check_on_host = arguments.check};
    // Under a work limit alone there is no limit of time.
    options.limit = {.seconds = arguments.search.options().limit.seconds - seconds_since_start(),
                     .stop = &catch_interrupt()};
    options.progress = [this](const pipeline::RunProgress& progress) { show(progress); };
    return options;
  }
  void show(const pipeline::RunProgress& progress) {
    constexpr double kEvery = 0.1;
    const double now = watch_.seconds();
    if (!line_ || !line_->active() || now - shown_at_ < kEvery) return;
    shown_at_ = now;
    line_->show(fmt::format("executing the {}, {}: step {} of {}", progress.baseline ? "baseline" : "schedule",
                            progress.execution == 0 ? "to warm up" : fmt::format("time {}", progress.execution),
                            progress.step + 1, progress.steps));
  }

  const Console& console_;
  core::Stopwatch watch_{core::Limit{}};
  double shown_at_ = -1;
  std::optional<ProgressLine> line_;
  pipeline::SideBySide both_;
};

int run(const RunArguments& arguments) {
  if (!arguments.objective.given() && arguments.schedule.empty())
    throw core::InputError("run needs --budget, as 1.5GiB or 50%, or --max-cost or --schedule s.json");
  if (!arguments.schedule.empty() && arguments.search.names_solver())
    throw core::InputError("--schedule runs a schedule as it is and --solver searches one; drop either");
  if (!arguments.schedule.empty() && (!arguments.objective.max_cost.empty() || arguments.objective.budget == "min"))
    throw core::InputError("--schedule runs a schedule as it is: drop --max-cost and --budget min");
  if (!arguments.schedule.empty() && (arguments.search.narrows() || !arguments.start.path.empty()))
    throw core::InputError(
        "--schedule runs a schedule as it is: drop --start, --order, --max-occurrences and --option");
  require_outputs({{"-o", arguments.output},
                   {"--plan", arguments.plan},
                   {"--report", arguments.report},
                   {"--trace", arguments.trace}},
                  {arguments.graph.input(), {"--schedule", arguments.schedule}, {"--start", arguments.start.path}});
  const auto backend = pipeline::open_backend(arguments.backend.backend);
  arguments.search.find();
  const pipeline::PreparedGraph graph =
      pipeline::prepare(*backend, arguments.graph.source(), arguments.backend.given());
  if (arguments.check && core::stores_bf16(graph.given))
    throw core::InputError(
        "--check compares with the host, which executes fp32 only; give the graph in fp32 and --precision bf16");
  const pipeline::Task task =
      arguments.objective.task(graph.prepared, arguments.graph.name, arguments.alignment, arguments.search);
  const pipeline::Problem& problem = task.problem;
  const bool hopeless = problem.budget && *problem.budget < task.rounded.plan_bound();
  std::optional<Executing> executing;
  double to_execute = 0;
  if (arguments.schedule.empty() && !hopeless) {
    executing.emplace(*backend, graph, arguments);
    to_execute = executing->begin(arguments.search.options().limit);
  }
  const Choice choice = arguments.schedule.empty() ? search_choice(task, graph.given, arguments, to_execute)
                                                   : read_choice(problem, graph.given, arguments);
  const pipeline::Decision& decision = choice.decision;
  write_schedule(graph.given, arguments, decision.schedule, decision.solver);
  if (!arguments.plan.empty()) core::write_file(arguments.plan, core::plan_to_json(problem.graph, decision.plan));

  if (!executing) executing.emplace(*backend, graph, arguments);
  const pipeline::RunResult result = executing->finish(decision);
  const Run outcome{arguments, task, problem, *backend, graph.precision, choice, result};
  Json json = to_json(outcome);
  if (const auto& check = result.host_check; check && !check->close)
    throw Failure(kDefect,
                  fmt::format("output '{}' differs from the host's by {:.2e} of its norm, and rounding explains no "
                              "more than {:.2e}; please report this",
                              check->worst_output, check->worst_error, check->worst_allowed),
                  std::move(json));
  if (!arguments.trace.empty()) core::write_file(arguments.trace, pipeline::run_trace(problem.graph, decision, result));
  if (!arguments.report.empty())
    core::write_file(arguments.report, pipeline::run_page(problem, *backend, decision, result, choice.tradeoffs()));
  const pipeline::Comparison& comparison = result.comparison;
  if (!comparison.identical())
    throw Failure(kDefect,
                  fmt::format("{} of {} outputs differ from the baseline's, first '{}'; please report this",
                              comparison.different.size(), comparison.outputs, comparison.different.front()),
                  std::move(json));
  const Explanation explanation(problem.graph, &decision.schedule);
  explanation.add_to(json);
  arguments.console.print(json, arguments.console.json ? "" : table(outcome) + explanation.text(arguments.explain));
  return kDone;
}

}  // namespace

Subcommand add_run(CLI::App& root) {
  CLI::App* app = root.add_subcommand("run", "execute a graph under a memory budget and compare it with the baseline");
  auto arguments = std::make_shared<RunArguments>();
  arguments->console.add_to(*app);
  arguments->objective.add_to(*app, "bytes of the arena: 1.5GiB, 200MB, 12345");
  arguments->search.add_to(*app, "10s");
  arguments->start.add_to(*app);
  app->add_option("--schedule", arguments->schedule, "run this schedule file instead of searching one");
  arguments->backend.add_to(*app);
  app->add_option("--report", arguments->report, "HTML page to write: memory over time, the plan, the table");
  app->add_option("--trace", arguments->trace,
                  "Chrome/Perfetto trace to write: schedule and baseline with measured times, memory, tensors");
  add_explain(*app, arguments->explain);
  app->add_option("-o,--output", arguments->output, "schedule file to write");
  app->add_option("--plan", arguments->plan, "plan file to write");
  arguments->alignment.add_to(*app);
  app->add_option("--repeat", arguments->repeats,
                  "timed executions of baseline and schedule, by turns, after one to warm up; the median time is "
                  "reported. Absent: 3 to 15, as fit into a second and into --time-limit")
      ->check(at_least_one());
  app->add_flag("--poison", arguments->poison, "overwrite every buffer when it dies: a read after free shows");
  app->add_flag(
      "--check", arguments->check,
      "compare every kept output with the host's in fp32; what may differ is measured by disturbing the host");
  app->add_flag("--sentinels", arguments->sentinels,
                "check a guard behind every buffer after each step; the guards add to the arena, beside the budget");
  arguments->graph.add_to(*app);
  app->footer(
      "Examples:\n"
      "  cairn run resnet50 --batch 8 --image 64 --budget 50%\n"
      "  cairn run gpt2 --layers 2 --max-cost 10%\n"
      "  cairn run unet --budget 60% --report unet.html --trace unet.trace.json\n"
      "  cairn run graph.json --schedule s.json --poison --sentinels");
  return {app, [arguments] { return run(with_batch(*arguments)); }};
}

}  // namespace cairn::cli
