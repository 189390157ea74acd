#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "cairn/cli/arguments.h"
#include "cairn/cli/mpi.h"
#include "cairn/cli/output.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/support/text.h"
#include "cairn/core/threads.h"
#include "cairn/pipeline/backend.h"
#include "cairn/pipeline/request.h"
#include "cairn/pipeline/sweep.h"
#include "cairn/report/pages.h"

namespace cairn::cli {
namespace {

struct SimulateArguments {
  Console console;
  GraphArguments graph;
  /// The number of random schedules, and the path of a file of schedules. Exactly one of these two is given; the other
  /// one is empty.
  std::string random, schedules;
  DeviceChoice device;
  std::string link, host_budget;  ///< texts of --link and --host-budget; empty: not given
  std::string budget, time_limit, on_bad_line = "stop", checkpoint, checkpoint_every = "30s";
  std::string output, best, report;
  std::uint64_t seed = 0;
  std::int32_t moves = 0, top = 10, transfers = 20;
  /// Largest number of schedules that the backend gets at once; 0: the backend chooses.
  std::int64_t at_once = 0;
  bool undominated = false;

  bool is_random() const { return !random.empty(); }
};

[[noreturn]] void refuse_count(std::string_view option, std::string_view text) {
  throw core::InputError(fmt::format(
      "{} '{}' is not a number of candidates; give one from 1 to 9e18, as 100000, 100k, 2.5M or 1e9", option, text));
}

/// Parses a number of candidate schedules, such as 1500, 10M, 5G, 2.5k or 1e6. Throws InputError if the text is not
/// such a number or the number is below 1.
std::int64_t parse_count(std::string_view option, std::string_view text) {
  constexpr std::int64_t kMost = 9'000'000'000'000'000'000;
  std::int64_t value = 0;
  int scale = 0;  // `value` must be multiplied by 10 to this power
  bool fraction = false, digits = false;
  std::size_t at = 0;
  for (; at < text.size() && (text[at] == '.' || (text[at] >= '0' && text[at] <= '9')); ++at) {
    if (text[at] == '.') {
      if (fraction) refuse_count(option, text);
      fraction = true;
      continue;
    }
    if (value > kMost / 10) refuse_count(option, text);
    value = value * 10 + (text[at] - '0');
    scale -= fraction ? 1 : 0;
    digits = true;
  }
  std::string_view unit = text.substr(at);
  if (!digits) refuse_count(option, text);
  if (unit.size() >= 2 && unit.size() <= 3 && (unit[0] == 'e' || unit[0] == 'E')) {
    int exponent = 0;
    for (const char c : unit.substr(1)) {
      if (c < '0' || c > '9') refuse_count(option, text);
      exponent = exponent * 10 + (c - '0');
    }
    scale += exponent;
  } else if (!unit.empty()) {
    constexpr std::string_view kUnits = "kMGTP";
    const std::size_t place = kUnits.find(unit == "K" ? 'k' : unit[0]);
    if (unit.size() != 1 || place == std::string_view::npos) refuse_count(option, text);
    scale += 3 * (static_cast<int>(place) + 1);
  }
  for (; scale > 0; --scale) {
    if (value > kMost / 10) refuse_count(option, text);
    value *= 10;
  }
  for (; scale < 0; ++scale) {
    if (value % 10 != 0) refuse_count(option, text);
    value /= 10;
  }
  if (value < 1) refuse_count(option, text);
  return value;
}

/// Throws InputError if options contradict each other. Must be called before any work.
void check(const SimulateArguments& arguments, const CLI::App& app, const Processes& processes) {
  if (arguments.random.empty() == arguments.schedules.empty())
    throw core::InputError(
        "simulate needs either --random N, as 10M, or --schedules F, a file with one schedule a line");
  const bool random = arguments.is_random();
  for (const char* option : {"--seed", "--recompute", "--transfers", "--checkpoint", "--checkpoint-every"}) {
    if (!random && app.count(option) > 0)
      throw core::InputError(fmt::format("{} is about --random candidates; drop it, or --schedules", option));
  }
  if (app.count("--transfers") > 0 && arguments.link.empty())
    throw core::InputError("--transfers is about a --link to the host; give that too, as --link pcie4");
  if (random && app.count("--on-bad-line") > 0)
    throw core::InputError("--on-bad-line is about the lines of --schedules; drop it");
  if (arguments.on_bad_line != "stop" && arguments.on_bad_line != "skip")
    throw core::InputError(fmt::format("--on-bad-line '{}' must be stop or skip", arguments.on_bad_line));
  if (arguments.schedules == "-" && processes.count() > 1)
    throw core::InputError("--schedules - reads stdin, which only one process has; give a file that all can read");
  if (arguments.undominated && processes.count() > 1)
    throw core::InputError("--undominated is for one process; drop it, or mpirun");
  if (arguments.checkpoint == "-")
    throw core::InputError("--checkpoint is read and replaced again and again; give it a file instead of -");
  require_outputs({{"-o", arguments.output},
                   {"--best", arguments.best},
                   {"--report", arguments.report},
                   {"--checkpoint", arguments.checkpoint}},
                  {arguments.graph.input(), {"--schedules", arguments.schedules}});
}

struct Setup {
  fit::Problem problem;
  sim::SweepOptions options;
  pipeline::RandomSweep random;
  std::unique_ptr<sim::Simulator> simulator;
};

/// Does everything that can fail because of bad input. This must be done before the sweep, which is the evaluation of
/// all candidates: if one process failed during the sweep, the other processes would wait for it forever.
Setup prepare(const SimulateArguments& arguments, const CLI::App& app, Processes& processes) {
  check(arguments, app, processes);
  const std::int64_t total = arguments.is_random() ? parse_count("--random", arguments.random) : 0;
  sim::SweepOptions options;
  options.at_once = arguments.at_once;
  options.stop = &catch_interrupt();
  options.checkpoint_seconds = core::parse_seconds(arguments.checkpoint_every);
  const double limit = arguments.time_limit.empty() ? options.seconds : core::parse_seconds(arguments.time_limit);
  fit::Problem problem = arguments.graph.problem(arguments.budget);
  if (const auto host = pipeline::parse_host_memory(arguments.link, arguments.host_budget))
    problem.graph = problem.graph.with_host_memory(host);
  const sim::Generator generator{arguments.seed, arguments.moves, arguments.link.empty() ? 0 : arguments.transfers};
  const sim::Tally tally(pipeline::tally_options(problem, arguments.top));
  pipeline::RandomSweep random =
      pipeline::random_sweep(problem, {generator, total, 0, tally}, arguments.checkpoint, processes.rank() == 0);
  random.undominated = arguments.undominated;
  if (processes.local_count() > 1 && !arguments.device.is_named()) pipeline::choose_device(processes.local_rank());
  auto simulator = pipeline::open_simulator(arguments.device.name(), problem.graph, threads_of(app, processes));
  options.seconds = until_answer({.seconds = limit}, problem.graph).seconds;
  return {std::move(problem), std::move(options), std::move(random), std::move(simulator)};
}

std::string progress_text(const fit::Problem& problem, const sim::SweepProgress& progress) {
  const bool bounded = progress.total > 0;
  const std::string best = progress.best
                               ? fmt::format("  best peak {} ({:+.1f}%)", core::format_bytes(progress.best->peak),
                                             increase_pct(progress.best->peak, problem.baseline.peak))
                               : "";
  return fmt::format(
      "{}{}{}  {:.3g}/s{}", bounded ? ProgressLine::bar(report::fraction(progress.done, progress.total)) : "",
      report::count_text(progress.done), bounded ? fmt::format(" of {}", report::count_text(progress.total)) : "",
      progress.per_second, best);
}

pipeline::Swept sweep(const SimulateArguments& arguments, Setup& setup, Processes& processes) {
  ProgressLine line(arguments.console);
  setup.options.progress = [&](const sim::SweepProgress& progress) {
    if (line.active()) line.show(progress_text(setup.problem, progress));
  };
  if (arguments.is_random())
    return pipeline::sweep_random(setup.problem, *setup.simulator, setup.random, setup.options, processes);
  return pipeline::sweep_file(
      setup.problem, *setup.simulator,
      {arguments.schedules, arguments.on_bad_line == "skip", arguments.output, arguments.undominated},
      setup.random.sweep.tally.options(), setup.options, processes);
}

/// Writes the output files and prints the results. Only rank 0 calls this. Returns the exit code.
int finish(const SimulateArguments& arguments, const Setup& setup, const pipeline::Swept& swept, int ranks) {
  const fit::Problem& problem = setup.problem;
  if (!swept.failure.empty()) throw core::InputError(swept.failure);
  const sim::Tally& tally = swept.tally;
  const bool random = arguments.is_random();
  if (random && tally.counts().invalid > 0)
    throw Failure(kDefect,
                  fmt::format("random candidate {} is not valid; please report this", tally.invalid().front()));
  if (!arguments.best.empty() && tally.counts().valid == 0)
    leave_unwritten(fmt::format("no candidate is valid, so '{}' was not written", arguments.best));
  pipeline::check_best(problem, swept);
  if (!tally.top().empty())
    write_output(arguments.best, [&] { return core::schedule_to_json(problem.graph, swept.best, "simulate"); });
  if (random)
    write_output(arguments.output, [&] { return pipeline::random_csv(problem, setup.random.sweep.generator, tally); });
  pipeline::SweepOrigin origin{{}, arguments.schedules, setup.simulator->backend(), setup.simulator->device(), ranks};
  if (random) origin.random = setup.random.sweep.generator;
  const Json json = report::sweep_json(problem, swept, origin);
  write_output(arguments.report, [&] { return report::sweep_page(problem, swept, origin); });
  if (swept.interrupted)
    throw Failure(kInterrupted,
                  fmt::format("interrupted after {} candidates; {}", tally.candidates(),
                              arguments.checkpoint.empty()
                                  ? fmt::format("what was asked for was written{}",
                                                random ? "; with --checkpoint it could go on" : "")
                                  : fmt::format("the same command goes on from '{}'", arguments.checkpoint)),
                  json);
  arguments.console.print(json, arguments.console.json ? "" : report::sweep_table(problem, swept, origin));
  return kDone;
}

int simulate(const SimulateArguments& arguments, const CLI::App& app) {
  const auto processes = open_processes();
  // Every process reads the graph, but only rank 0 shows warnings and progress.
  if (processes->rank() != 0) streams().quiet = true;
  std::optional<Setup> setup;
  if (!together(*processes, [&] { setup.emplace(prepare(arguments, app, *processes)); })) return kDone;
  pipeline::Swept swept;
  or_end_all(*processes, arguments.console.json, [&] { swept = sweep(arguments, *setup, *processes); });
  return processes->rank() == 0 ? finish(arguments, *setup, swept, processes->count()) : kDone;
}

}  // namespace

Subcommand add_simulate(CLI::App& root) {
  CLI::App* app = root.add_subcommand("simulate", "evaluate many schedules: random ones, or those of a file");
  auto arguments = std::make_shared<SimulateArguments>();
  SimulateArguments& a = *arguments;
  a.console.add_to(*app);
  app->add_option("--random", a.random, "how many random schedules, as 100k, 10M or 5G");
  app->add_option("--schedules", a.schedules, "file with one schedule a line");
  app->add_option("--seed", a.seed, "of the random schedules")->capture_default_str();
  app->add_option("--recompute", a.moves, "most recomputed steps of a random schedule")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  app->add_option("--link", a.link,
                  "connection to the host's memory: schedules of a file may have transfers, random ones get them, and "
                  "costs are makespans; pcie3, pcie4, pcie5, c2c, or as 25GB/s or 25GB/s,10us,half");
  app->add_option("--host-budget", a.host_budget,
                  "count the schedules that take at most these bytes on the host, and are within --budget, if given");
  app->add_option("--transfers", a.transfers, "most values that a random schedule moves over the --link")
      ->capture_default_str()
      ->check(CLI::Range(0, 100'000));
  app->add_option("--top", a.top, "how many of the best to keep")->capture_default_str()->check(CLI::Range(1, 100'000));
  add_budget(*app, a.budget,
             "count the schedules within this budget: 1.5GiB, 200MB, 12345 or 80% of the baseline peak");
  app->add_flag(
      "--undominated", a.undominated,
      "also find the candidates whose memory profile is not dominated by any other's, for --json and --report");
  app->add_option("--on-bad-line", a.on_bad_line, "what to do with a line that is not a schedule: stop or skip")
      ->capture_default_str();
  app->add_option("--checkpoint", a.checkpoint, "file that keeps the state; the same command goes on from there");
  app->add_option("--checkpoint-every", a.checkpoint_every, "how often it is written")->capture_default_str();
  add_time_limit(*app, a.time_limit, "end after this wall time, as 10s, 5m or 2h, with what there is");
  app->add_option("-o,--output", a.output,
                  "CSV file to write: a line for every schedule of --schedules, or for the best and the Pareto set");
  app->add_option("--best", a.best, "schedule file to write: the best one");
  app->add_option("--report", a.report, "HTML page to write: histogram, Pareto set, tables");
  a.device.add_to(*app);
  add_threads(*app, "of each process", "the cores of a machine divided by the processes on it");
  app->add_option("--at-once", a.at_once, "most schedules that the backend is given at once; changes no result")
      ->check(at_least_one());
  a.graph.add_to(*app);
  app->footer(
      "Examples:\n"
      "  cairn simulate resnet50 --batch 8 --random 10M --recompute 20 --report sweep.html\n"
      "  cairn simulate graph.json --random 5G --checkpoint sweep.json    again after a crash, and it goes on\n"
      "  cairn simulate graph.json --random 1M --undominated --report sweep.html\n"
      "  cairn simulate gpt2 --random 1M --link pcie4 --transfers 50\n"
      "  cairn simulate graph.json --schedules lines.txt -o results.csv --on-bad-line skip\n"
      "  mpirun -np 4 --bind-to none cairn simulate graph.json --random 1G --json");
  return {app, [arguments, app] { return simulate(*arguments, *app); }};
}

}  // namespace cairn::cli
