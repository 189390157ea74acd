#include "cairn/pipeline/run.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "cairn/cli/arguments.h"
#include "cairn/cli/batch.h"
#include "cairn/cli/choice.h"
#include "cairn/cli/objective.h"
#include "cairn/cli/output.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/support/text.h"
#include "cairn/pipeline/backend.h"
#include "cairn/report/pages.h"
#include "cairn/solvers/fit/objective.h"

namespace cairn::cli {
namespace {

/// Largest fraction of the time limit that the search for a schedule leaves unused, so that executions fit into the
/// limit.
constexpr double kMostToExecute = 0.5;
/// If reading the graph took more than this fraction of the time limit, the baseline is not executed before the search.
constexpr double kMostToRead = 0.2;

struct RunArguments : ChoiceArguments {
  std::string report, trace, plan;
  int repeats = 0;  ///< number of timed executions; 0: pipeline::run() chooses
  bool poison = false, check = false, explain = false;
};

/// Executes the baseline and the schedule. begin() executes the baseline once, before the search; finish() does all
/// further executions after the search.
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

  /// Executes the baseline once. Let t be the time of this execution in seconds. Returns the number of seconds that the
  /// search must leave for later executions. This is kRounds * t, which allows several executions of baseline and
  /// schedule, but at most the fraction kShareOfRounds of the time limit. It is at least kOfBaseline * t, because the
  /// schedule is executed at least once and has more steps than the baseline.
  double begin(const core::Limit& limit) {
    // kMost and kShareOfRounds are fractions of the time limit; the others are multiples of t.
    constexpr double kMost = 0.2, kOfBaseline = 1.5, kRounds = 6, kShareOfRounds = 0.1;
    if (!std::isfinite(limit.seconds)) return 0;
    double seconds = 0;
    try {
      seconds = with_line([&] { return both_.warm_up(kMost * limit.seconds); });
    } catch (const core::InterruptedError&) {
      // Ctrl-C was pressed. The search will see the stop flag, too, and report this.
    }
    return std::max(kOfBaseline * seconds, std::min(kRounds * seconds, kShareOfRounds * limit.seconds));
  }
  const std::string& why_no_baseline() const { return both_.why_no_baseline(); }
  pipeline::RunResult finish(const fit::Decision& decision) {
    return with_line([&] { return both_.run(decision); });
  }

 private:
  pipeline::RunOptions options(const RunArguments& arguments) {
    pipeline::RunOptions options{.seed = arguments.search.seed,
                                 .poison = arguments.poison,
                                 .streams = arguments.streams,
                                 .repeats = arguments.repeats,
                                 .check_on_host = arguments.check};
    // If the user gave only a work limit, the time limit is infinite.
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
  arguments.require_one_choice();
  require_outputs({{"-o", arguments.output},
                   {"--plan", arguments.plan},
                   {"--report", arguments.report},
                   {"--trace", arguments.trace}},
                  {arguments.graph.input(), {"--schedule", arguments.schedule}, {"--start", arguments.start.path}});
  const auto backend = pipeline::open_backend(arguments.backend.name());
  arguments.require_streams(*backend, arguments.poison);
  arguments.search.find();
  const pipeline::PreparedGraph graph =
      pipeline::prepare(*backend, arguments.graph.source(), arguments.backend.given());
  if (arguments.check && core::stores_bf16(graph.given))
    throw core::InputError(
        "--check compares with the host, which executes fp32 only; give the graph in fp32 and --precision bf16");
  fit::Task task =
      arguments.objective.task(graph.prepared, arguments.graph.name, arguments.alignment, arguments.search);
  const fit::Problem& problem = task.problem;
  const bool hopeless = problem.budget && *problem.budget < task.rounded.plan_bound();
  std::optional<Executing> executing;
  double to_execute = 0;
  if (arguments.schedule.empty() && !hopeless) {
    pipeline::require_memory(*backend, graph.prepared, task.rounded);
    const core::Limit limit = arguments.search.options().limit;
    // If reading the graph took long, an execution of the baseline could use up the remaining time.
    if (seconds_since_start() < kMostToRead * limit.seconds) {
      executing.emplace(*backend, graph, arguments);
      if (!arguments.console.quiet && !executing->why_no_baseline().empty())
        std::cerr << fmt::format("cairn: the baseline will not be executed, and nothing compared with it: {}\n",
                                 executing->why_no_baseline());
      to_execute = executing->begin(limit);
    } else {
      to_execute = kMostToExecute * limit.seconds;
    }
  }
  const Choice choice = arguments.schedule.empty() ? search_choice(task, graph.given, arguments, to_execute)
                                                   : read_choice(problem, graph.given, arguments);
  const auto faster = pipeline::use_free_memory(*backend, graph, task, choice.decision, &catch_interrupt());
  const pipeline::PreparedGraph& executed = faster ? faster->graph : graph;
  const fit::Decision& decision = faster ? faster->decision : choice.decision;
  if (faster)
    task = arguments.objective.task(executed.prepared, arguments.graph.name, arguments.alignment, arguments.search);
  write_schedule(graph.given, arguments, decision.schedule, decision.solver,
                 decision.guarded ? std::nullopt : decision.plan);
  write_output(arguments.plan, [&] { return core::plan_to_json(problem.graph, decision.executed_plan()); });

  if (faster) executing.reset();
  if (!executing) executing.emplace(*backend, executed, arguments);
  const pipeline::RunResult result = executing->finish(decision);
  const pipeline::RunOutcome outcome{task,
                                     *backend,
                                     graph.precision,
                                     decision,
                                     choice.answer ? &*choice.answer : nullptr,
                                     result,
                                     faster ? faster->nodes : 0};
  Json json = report::run_json(outcome);
  write_output(arguments.trace, [&] { return report::run_trace(problem.graph, decision, result); });
  write_output(arguments.report,
               [&] { return report::run_page(problem, *backend, decision, result, choice.tradeoffs()); });
  if (const std::string defect = report::defect_of(result); !defect.empty())
    throw Failure(kDefect, defect, std::move(json));
  const Explanation explanation(problem.graph, &decision.schedule);
  explanation.add_to(json);
  arguments.console.print(
      json, arguments.console.json ? "" : report::run_table(outcome) + explanation.text(arguments.explain));
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
  arguments->add_streams_to(*app);
  app->add_option("--report", arguments->report, "HTML page to write: memory over time, the plan, the table");
  app->add_option("--trace", arguments->trace,
                  "Chrome/Perfetto trace to write: schedule and baseline with measured times, memory, tensors");
  add_explain(*app, arguments->explain);
  app->add_option("-o,--output", arguments->output, "schedule file to write");
  app->add_option("--plan", arguments->plan, "plan file to write");
  arguments->alignment.add_to(*app);
  app->add_option("--repeat", arguments->repeats,
                  "timed executions of baseline and schedule, alternating, after one to warm up; the median time is "
                  "reported. Absent: 3 to 15, as fit into a second and into --time-limit")
      ->check(at_least_one());
  app->add_flag("--poison", arguments->poison,
                "fill every buffer with NaN after its last use, so that later reads show");
  app->add_flag("--check", arguments->check,
                "compare every kept output with the host's in fp32; the tolerance is measured by adding rounding noise "
                "on the host");
  app->add_flag(
      "--sentinels", arguments->sentinels,
      "check a guard behind every buffer after each step; guards enlarge the arena and are not counted in the budget");
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
