#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/cli/arguments.h"
#include "cairn/cli/batch.h"
#include "cairn/cli/commands/tw_curve.h"
#include "cairn/cli/mpi.h"
#include "cairn/cli/objective.h"
#include "cairn/cli/output.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/text.h"
#include "cairn/core/threads.h"
#include "cairn/pipeline/backend.h"
#include "cairn/report/pages.h"
#include "cairn/report/perfetto.h"
#include "cairn/solvers/fit/curve.h"
#include "cairn/solvers/fit/objective.h"

namespace cairn::cli {
namespace {

struct SolveArguments {
  Console console;
  GraphArguments graph;
  SolverArguments search;
  StartArgument start;
  AlignmentChoice alignment;
  ObjectiveArguments objective;
  SearchAids aids;
  std::string output, plan, report, sweep, trace, certificate;
  bool stream = false, explain = false;
};

void write(const fit::Task& task, const SolveArguments& arguments, const fit::Answer& answer) {
  if (!answer.has_schedule()) return;
  const core::Graph& graph = task.problem.graph;
  write_output(arguments.output, [&] {
    return core::schedule_to_json(graph, answer.found.solution.schedule, arguments.search.solver, answer.found.plan);
  });
  if (answer.found.plan) write_output(arguments.plan, [&] { return core::plan_to_json(graph, *answer.found.plan); });
  write_output(arguments.report, [&] { return report::solve_page(task, arguments.search.solver, answer); });
  write_output(arguments.trace, [&] {
    const core::Schedule baseline = core::baseline_schedule(graph);
    return report::perfetto_trace(
        graph, {.schedule = &answer.found.solution.schedule, .plan = answer.found.plan ? &*answer.found.plan : nullptr},
        {.schedule = &baseline});
  });
}

/// Throws InputError if --certificate is given, and the task has no bound that can be certified.
void check_certificate(const SolveArguments& arguments, const fit::Task& task) {
  if (arguments.certificate.empty()) return;
  using enum fit::Objective;
  if (task.objective != within_budget && task.objective != within_peak && task.objective != within_cost)
    throw core::InputError("--certificate is about the cost within a budget: give --budget (not min) or --max-cost");
  if (task.problem.graph.host_memory())
    throw core::InputError("--certificate does not go with --link: there are no certificates about transfers");
}

/// Makes the certificate of an answer, which proves a lower bound, and writes it to a file. Returns nothing if the user
/// asked for no certificate, or if there is neither an answer nor a budget.
std::optional<solvers::Certificate> certify(const fit::Task& task, const SolveArguments& arguments,
                                            const fit::Answer& answer, const core::Limit& limit) {
  if (arguments.certificate.empty() || (!answer.success && !task.problem.budget)) return std::nullopt;
  core::Stopwatch watch(limit);
  const solvers::Certificate certificate = fit::certify(task, answer, watch);
  write_output(arguments.certificate,
               [&] { return report::certificate_file(task, answer, certificate).dump() + "\n"; });
  return certificate;
}

/// Throws InputError if --sweep or --stream is combined with an option that has no effect on it.
void check_tw_outputs(const SolveArguments& arguments, solvers::SolveOptions& options) {
  const bool sweep = !arguments.sweep.empty();
  if (!sweep && !arguments.stream) return;
  const std::string_view name = sweep ? "--sweep" : "--stream";
  if (arguments.search.solver != "tw")
    throw core::InputError(fmt::format("{} is about TWRemat(k): give --solver tw", name));
  const std::pair<std::string_view, bool> ignored[] = {{"--stream", sweep && arguments.stream},
                                                       {"-o", sweep && !arguments.output.empty()},
                                                       {"--plan", !arguments.plan.empty()},
                                                       {"--report", !arguments.report.empty()},
                                                       {"--trace", !arguments.trace.empty()},
                                                       {"--certificate", !arguments.certificate.empty()},
                                                       {"--start", !arguments.start.path.empty()},
                                                       {"--budget", !arguments.objective.budget.empty()},
                                                       {"--option k", sweep && options.own.contains("k")}};
  for (const auto& [option, given] : ignored) {
    if (given) throw core::InputError(fmt::format("{} does not go with {}; drop one of them", option, name));
  }
  // --stream has no default time limit, because it does not search: its time depends only on the graph and on the
  // solver's option k.
  if (arguments.stream && arguments.search.time_limit.empty())
    options.limit.seconds = std::numeric_limits<double>::infinity();
}

/// Throws InputError if the request is one on which only a single process can work.
void check_processes(const SolveArguments& arguments, const fit::Task& task) {
  if (!arguments.sweep.empty() || arguments.stream)
    throw core::InputError("--sweep and --stream are for one process; drop them, or mpirun");
  if (task.objective == fit::Objective::knee)
    throw core::InputError("the knee of the curve is for one process: give --budget or --max-cost, or drop mpirun");
}

/// Holds a task and all that its search needs. `options` has pointers to the other members.
struct Job {
  SolveArguments arguments;
  fit::Task task;
  solvers::SolveOptions options;
  OpenedAids aids;
  std::unique_ptr<const core::ScheduleFile> start;
};

/// Makes the job. Does everything that can fail because of bad input.
Job prepare(const SolveArguments& given, Processes& processes) {
  if (processes.count() > 1 && given.graph.batch_auto)
    throw core::InputError("--batch auto is for one process; give a number, or drop mpirun");
  for (const std::string& path : {given.graph.name, given.start.path, given.aids.td}) {
    if (processes.count() > 1 && path == "-")
      throw core::InputError("- is stdin, which only one process has; give a file that all processes can read");
  }
  SolveArguments arguments = with_batch(given);
  const auto& solver = arguments.search.find();
  solvers::SolveOptions options = arguments.search.options();
  require_outputs({{"-o", arguments.output},
                   {"--plan", arguments.plan},
                   {"--report", arguments.report},
                   {"--sweep", arguments.sweep},
                   {"--trace", arguments.trace},
                   {"--certificate", arguments.certificate}},
                  {arguments.graph.input(), arguments.aids.input(), {"--start", arguments.start.path}});
  check_tw_outputs(arguments, options);
  fit::Task task =
      arguments.objective.task(arguments.graph.load(), arguments.graph.name, arguments.alignment, arguments.search);
  check_certificate(arguments, task);
  if (processes.count() > 1) check_processes(arguments, task);
  if (processes.local_count() > 1 && !arguments.aids.device.is_named()) pipeline::choose_device(processes.local_rank());
  OpenedAids aids = arguments.aids.open(task.searched().graph);
  aids.lend_to(options);
  auto start = arguments.start.load_into(options, solver, task.problem.graph);
  options.seed = seed_of(options.seed, processes.rank());
  options.peers = processes.peers();
  return {std::move(arguments), std::move(task), std::move(options), std::move(aids), std::move(start)};
}

/// Searches on every process. Returns the answer on the process whose answer is the best, and nothing on all other
/// processes.
std::optional<fit::Answer> search(const Job& job, Processes& processes) {
  const SolveArguments& arguments = job.arguments;
  fit::Answer answer;
  or_end_all(processes, arguments.console.json, [&] {
    ProgressLine line(arguments.console);
    solvers::SolveOptions options = job.options;
    options.progress = line.of_search(job.task.problem, options.limit.seconds);
    answer = search(job.task, arguments.search, options, line.of_curve(options.limit.seconds));
  });
  processes.end_exchange();
  const std::vector<std::string> merits =
      processes.gather(fmt::format("{:020}", fmt::join(fit::merit(job.task, answer), " ")));
  std::array<std::int64_t, 1> best = {std::ranges::min_element(merits) - merits.begin()};
  processes.broadcast(best);
  return best[0] == processes.rank() ? std::optional(std::move(answer)) : std::nullopt;
}

/// Writes the output files and prints the answer. Returns the exit code.
int finish(Job& job, const fit::Answer& answer, const core::Stopwatch& watch, int processes) {
  const SolveArguments& arguments = job.arguments;
  fit::Task& task = job.task;
  solvers::SolveOptions& options = job.options;
  write(task, arguments, answer);

  if (!task.plans_fit() || task.rounded.same_sizes(task.problem))
    task.problem.lower_bound = std::max(task.problem.lower_bound, answer.found.solution.peak_bound.value);
  options.limit = watch.rest();
  options.peers = nullptr;                    // the other processes have ended their searches and receive nothing
  streams().quiet = arguments.console.quiet;  // warnings from here on are those of the process that answers
  const fit::LeastBudget least =
      remember(task, arguments.search, fit::least_budget_after(task, answer, arguments.search.find(), options));
  Json json = report::answer_json(task, arguments.search.solver, answer, least, catch_interrupt());
  if (processes > 1) json["processes"] = processes;
  const std::optional<solvers::Certificate> certificate = certify(task, arguments, answer, watch.rest());
  if (certificate) json["certificate"] = report::certificate_json(task, answer, *certificate);
  const auto failure = [&] {
    return failure_of(task, arguments.search, answer, least, arguments.output, ", or ask for --peak-only", json);
  };
  if (catch_interrupt()) {
    // If there is no schedule, the search has proved that no schedule meets the task. Ctrl-C then only shortened the
    // search for the least budget that can be met.
    const std::string known = answer.has_schedule() ? report::best_so_far_text(task, answer, arguments.output)
                                                    : std::string(failure().what());
    throw Failure(kInterrupted, "interrupted; " + known, json);
  }
  if (!answer.success) throw failure();
  const Explanation explanation(task.problem.graph, &answer.found.solution.schedule);
  explanation.add_to(json);
  arguments.console.print(json, arguments.console.json ? ""
                                                       : report::answer_table(task, arguments.search.solver, answer,
                                                                              certificate ? &*certificate : nullptr) +
                                                             explanation.text(arguments.explain));
  return kDone;
}

int solve(const SolveArguments& given, const CLI::App& app) {
  const auto processes = open_processes();
  if (processes->count() > 1) core::set_thread_count(threads_of(app, *processes));
  // Every process reads the graph, but only rank 0 shows warnings and progress.
  streams().quiet = streams().quiet || processes->rank() != 0;
  std::optional<Job> job;
  if (!together(*processes, [&] { job.emplace(prepare(given, *processes)); })) return kDone;
  const SolveArguments& arguments = job->arguments;
  fit::Task& task = job->task;
  solvers::SolveOptions& options = job->options;
  if (!arguments.sweep.empty()) return write_tw_curve(arguments.console, task.problem, options, arguments.sweep);
  if (arguments.stream) return stream_tw_schedule(arguments.console, task.problem, options, arguments.output);
  options.limit = until_answer(options.limit, task.problem.graph);
  const core::Stopwatch watch(options.limit);
  constexpr double kSearched = 0.9;  // fraction of the time limit that the search gets if a certificate follows
  if (!arguments.certificate.empty()) options.limit = watch.share(kSearched);
  const std::optional<fit::Answer> answer = search(*job, *processes);
  return answer ? finish(*job, *answer, watch, processes->count()) : kDone;
}

}  // namespace

Subcommand add_solve(CLI::App& root) {
  CLI::App* app = root.add_subcommand("solve", "find a schedule under a memory budget");
  auto arguments = std::make_shared<SolveArguments>();
  arguments->console.add_to(*app);
  arguments->objective.add_to(
      *app,
      "bytes of the plan: 1.5GiB, 200MB, 12345. Absent: the knee of the curve from memory to cost, or the least peak "
      "with a --solver other than auto");
  arguments->search.add_to(*app, "10s");
  arguments->start.add_to(*app);
  app->add_option("-o,--output", arguments->output, "schedule file to write");
  app->add_option("--plan", arguments->plan, "plan file to write: where every tensor lives");
  app->add_option("--report", arguments->report,
                  "HTML page to write: memory and addresses over time, what is alive at the peak, what is recomputed");
  app->add_option("--trace", arguments->trace,
                  "Chrome/Perfetto trace to write: schedule and baseline, costs taken as ns, memory, tensors");
  app->add_option("--certificate", arguments->certificate,
                  "file to write: a proof of the bound that a short program can check (docs/remat/certificate.md)");
  arguments->aids.add_to(*app);
  add_peak_only(*app, arguments->objective.peak_only);
  add_explain(*app, arguments->explain);
  app->add_option("--sweep", arguments->sweep,
                  "CSV file to write, with --solver tw: peak, steps and cost of TWRemat(k) for k from n to 1");
  app->add_flag(
      "--stream", arguments->stream,
      "with --solver tw --option k=K: write TWRemat(K) to -o step by step, however long it is, without a plan");
  arguments->alignment.add_to(*app);
  arguments->graph.precision.add_to(*app);
  arguments->graph.add_to(*app);
  std::string footer = "Solvers:\n";
  for (const auto& info : solvers::registry()) {
    const std::string graphs = info.graphs == "any"   ? ""
                               : info.most_values > 0 ? fmt::format("; only graphs with at most {}", info.graphs)
                                                      : fmt::format("; {} graphs only", info.graphs);
    footer += fmt::format("  {:<12} {}{}\n", info.name, info.guarantee, graphs);
  }
  app->footer(footer +
              "Examples:\n"
              "  cairn solve graph.json --budget 80% -o s.json\n"
              "  cairn solve graph.json --budget 80% --start s.json -o s.json     from there on\n"
              "  cairn solve graph.json --max-cost 5%\n"
              "  cairn solve resnet50 --batch 8 --solver tw --budget 1.5GiB --time-limit 30s --json\n"
              "  mpirun -np 4 --bind-to none cairn solve graph.json --budget 80%     the best of four searches");
  return {app, [arguments, app] { return solve(*arguments, *app); }};
}

}  // namespace cairn::cli
