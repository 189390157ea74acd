#include "cairn/cli/simulate.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "cairn/cli/backend.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/text.h"
#include "cairn/sim/generator.h"

namespace cairn::cli {
namespace {

/// 1500, 10M, 5G, 2.5k, 1e6: a number of candidates from 1 on. Throws InputError.
std::int64_t parse_count(std::string_view option, std::string_view text) {
  const auto fail = [&] [[noreturn]] () {
    throw core::InputError(fmt::format(
        "{} '{}' is no number of candidates; give one from 1 to 9e18, as 100000, 100k, 2.5M or 1e9", option, text));
  };
  constexpr std::int64_t kMost = 9'000'000'000'000'000'000;
  std::int64_t value = 0;
  int scale = 0;  // powers of ten
  bool fraction = false, digits = false;
  std::size_t at = 0;
  for (; at < text.size() && (text[at] == '.' || (text[at] >= '0' && text[at] <= '9')); ++at) {
    if (text[at] == '.') {
      if (fraction) fail();
      fraction = true;
      continue;
    }
    if (value > kMost / 10) fail();
    value = value * 10 + (text[at] - '0');
    scale -= fraction ? 1 : 0;
    digits = true;
  }
  std::string_view unit = text.substr(at);
  if (!digits) fail();
  if (unit.size() >= 2 && unit.size() <= 3 && (unit[0] == 'e' || unit[0] == 'E')) {
    int exponent = 0;
    for (const char c : unit.substr(1)) {
      if (c < '0' || c > '9') fail();
      exponent = exponent * 10 + (c - '0');
    }
    scale += exponent;
  } else if (!unit.empty()) {
    constexpr std::string_view kUnits = "kMGTP";
    const std::size_t place = kUnits.find(unit == "K" ? 'k' : unit[0]);
    if (unit.size() != 1 || place == std::string_view::npos) fail();
    scale += 3 * (static_cast<int>(place) + 1);
  }
  for (; scale > 0; --scale) {
    if (value > kMost / 10) fail();
    value *= 10;
  }
  for (; scale < 0; ++scale) {
    if (value % 10 != 0) fail();
    value /= 10;
  }
  if (value < 1) fail();
  return value;
}

/// CPU threads for one of the processes of this machine: its share, but no more than it is bound to.
int threads_of(const SimulateArguments& arguments, const Processes& processes) {
  if (arguments.threads > 0 || processes.local_count() == 1) return arguments.threads;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t bound;
  const int allowed = sched_getaffinity(0, sizeof(bound), &bound) == 0 ? CPU_COUNT(&bound) : cores;
  return std::max(1, std::min(allowed, cores / processes.local_count()));
}

/// Throws InputError where options contradict each other, before any work is done.
void check(const SimulateArguments& arguments, const CLI::App& app, const Processes& processes) {
  if (arguments.random.empty() == arguments.schedules.empty())
    throw core::InputError(
        "simulate needs either --random N, as 10M, or --schedules F, a file with one schedule a line");
  const bool random = !arguments.random.empty();
  for (const char* option : {"--seed", "--recompute", "--checkpoint", "--checkpoint-every"}) {
    if (!random && app.count(option) > 0)
      throw core::InputError(fmt::format("{} is about --random candidates; drop it, or --schedules", option));
  }
  if (random && app.count("--on-bad-line") > 0)
    throw core::InputError("--on-bad-line is about the lines of --schedules; drop it");
  if (arguments.on_bad_line != "stop" && arguments.on_bad_line != "skip")
    throw core::InputError(fmt::format("--on-bad-line '{}' must be stop or skip", arguments.on_bad_line));
  if (arguments.schedules == "-" && processes.count() > 1)
    throw core::InputError("--schedules - reads stdin, which only one process has; give a file that all can read");
  require_outputs({{"-o", arguments.output},
                   {"--best", arguments.best},
                   {"--report", arguments.report},
                   {"--checkpoint", arguments.checkpoint}},
                  {arguments.source.input(), {"--schedules", arguments.schedules == "-" ? "" : arguments.schedules}});
}

sim::TallyOptions tally_options(const SimulateArguments& arguments, const Problem& problem) {
  sim::TallyOptions options = sim::tally_options(problem.graph);
  options.top = arguments.top;
  if (problem.budget) options.budget = *problem.budget;
  return options;
}

/// Everything that can fail for want of good input, done before the processes begin to wait for each other.
struct Setup {
  Setup(const SimulateArguments& arguments, const CLI::App& app, Processes& processes)
      : sweep{{arguments.seed, arguments.moves}, 0, 0, {}} {
    check(arguments, app, processes);
    if (!arguments.random.empty()) sweep.total = parse_count("--random", arguments.random);
    options.at_once = arguments.at_once;
    options.stop = &catch_interrupt();
    options.checkpoint_seconds = core::parse_seconds(arguments.checkpoint_every);
    if (!arguments.time_limit.empty()) options.seconds = core::parse_seconds(arguments.time_limit);
    problem.emplace(arguments.source, arguments.budget);
    sweep.tally = sim::Tally(tally_options(arguments, *problem));
    if (processes.rank() == 0 && !arguments.checkpoint.empty() && std::filesystem::exists(arguments.checkpoint)) {
      sweep = sim::resume_sweep(core::read_file(arguments.checkpoint), arguments.checkpoint, problem->graph,
                                std::move(sweep));
      resumed_from = sweep.done;
    }
    if (processes.local_count() > 1) choose_device(processes.local_rank());
    simulator = open_simulator(arguments.backend, problem->graph, threads_of(arguments, processes));
  }

  sim::Sweep sweep;
  sim::SweepOptions options;
  std::optional<Problem> problem;
  std::optional<std::int64_t> resumed_from;
  std::unique_ptr<sim::Simulator> simulator;
};

/// Runs `step` on every process. Where it fails, the first one that failed throws, and the others return its exit code.
int together(Processes& processes, const std::function<void()>& step) {
  std::exception_ptr caught;
  Ending ending;
  try {
    step();
  } catch (...) {
    caught = std::current_exception();
    ending = current_ending();
  }
  std::array<std::int64_t, 2> first_failed = {-1, kDone};
  const std::vector<std::string> codes = processes.gather(std::to_string(ending.code));
  for (std::size_t rank = 0; rank < codes.size() && first_failed[0] < 0; ++rank) {
    if (codes[rank] != std::to_string(kDone)) first_failed = {static_cast<std::int64_t>(rank), std::stoi(codes[rank])};
  }
  processes.broadcast(first_failed);
  if (first_failed[0] == processes.rank()) {
    if (processes.count() == 1) std::rethrow_exception(caught);
    throw Failure(ending.code, fmt::format("process {}: {}", processes.rank(), ending.message), ending.details);
  }
  return static_cast<int>(first_failed[1]);
}

Swept sweep_random(const SimulateArguments& arguments, Setup& setup, Processes& processes) {
  SweepLine line(arguments.console, *setup.problem);
  setup.options.progress = [&](const sim::SweepProgress& progress) { line.show(progress); };
  if (!arguments.checkpoint.empty()) {
    setup.options.checkpoint = [&](const sim::Sweep& sweep) {
      core::write_file(arguments.checkpoint, sim::sweep_to_json(setup.problem->graph, sweep));
    };
  }
  Swept swept;
  swept.result = sim::run_sweep(*setup.simulator, setup.sweep, setup.options, processes);
  swept.resumed_from = setup.resumed_from;
  if (setup.sweep.done < setup.sweep.total) {
    swept.interrupted = catch_interrupt();
    swept.timed_out = !swept.interrupted;
  }
  swept.tally = std::move(setup.sweep.tally);
  if (!swept.tally.top().empty())
    swept.best = sim::generate(setup.problem->graph, setup.sweep.generator, swept.tally.top().front().index);
  return swept;
}

/// The schedule's figures by the validator. Throws Failure(kDefect) where the sweep had others.
core::Evaluation require_same(const core::Graph& graph, const core::Schedule& schedule, const sim::Entry& entry) {
  const core::Evaluation evaluation = core::evaluate(graph, schedule);
  if (!evaluation.valid() || evaluation.peak != entry.peak || evaluation.cost != entry.cost)
    throw Failure(kDefect,
                  fmt::format("the simulator gave candidate {} peak {} and cost {}, but it has {} and {}{}; please "
                              "report this",
                              entry.index, entry.peak, entry.cost, evaluation.peak, evaluation.cost,
                              evaluation.valid() ? "" : " and is invalid"));
  return evaluation;
}

/// Best and Pareto candidates of a random sweep, generated and evaluated again.
std::string random_csv(const Setup& setup, const sim::Tally& tally) {
  std::string text = "index,valid,peak_bytes,peak_step,cost,rank,pareto\n";
  const auto contains = [](const std::vector<sim::Entry>& entries, const sim::Entry& entry) {
    return std::find(entries.begin(), entries.end(), entry) != entries.end();
  };
  const auto add = [&](const sim::Entry& entry, const std::string& rank, bool pareto) {
    const auto schedule = sim::generate(setup.problem->graph, setup.sweep.generator, entry.index);
    const core::Evaluation evaluation = require_same(setup.problem->graph, schedule, entry);
    text += fmt::format("{},1,{},{},{},{},{}\n", entry.index, entry.peak, evaluation.peak_step, entry.cost, rank,
                        pareto ? 1 : 0);
  };
  for (std::size_t i = 0; i < tally.top().size(); ++i)
    add(tally.top()[i], std::to_string(i + 1), contains(tally.front(), tally.top()[i]));
  for (const sim::Entry& entry : tally.front()) {
    if (!contains(tally.top(), entry)) add(entry, "", true);
  }
  return text;
}

/// Writes and prints what rank 0 has.
int finish(const SimulateArguments& arguments, const Setup& setup, const Swept& swept, int ranks) {
  const Problem& problem = *setup.problem;
  if (!swept.failure.empty()) throw core::InputError(swept.failure);
  const sim::Tally& tally = swept.tally;
  const bool random = !arguments.random.empty();
  if (random && tally.counts().invalid > 0)
    throw Failure(kDefect,
                  fmt::format("random candidate {} is not valid; please report this", tally.invalid().front()));
  if (!arguments.best.empty() && tally.counts().valid == 0)
    print_error(fmt::format("no candidate is valid, so '{}' was not written", arguments.best));
  if (!tally.top().empty()) {
    require_same(problem.graph, swept.best, tally.top().front());
    if (!arguments.best.empty())
      core::write_file(arguments.best, core::schedule_to_json(problem.graph, swept.best, "simulate"));
  }
  if (random && !arguments.output.empty()) core::write_file(arguments.output, random_csv(setup, tally));
  const Json json = describe(arguments, problem, swept, *setup.simulator, ranks);
  if (!arguments.report.empty()) core::write_file(arguments.report, report_page(problem, json, swept));
  if (swept.interrupted)
    throw Failure(kInterrupted,
                  fmt::format("interrupted after {} candidates; {}", tally.candidates(),
                              arguments.checkpoint.empty()
                                  ? fmt::format("what was asked for was written{}",
                                                random ? "; with --checkpoint it could go on" : "")
                                  : fmt::format("the same command goes on from '{}'", arguments.checkpoint)),
                  json);
  arguments.console.print(json, arguments.console.json ? "" : table(problem, json, swept));
  return kDone;
}

int simulate(const SimulateArguments& arguments, const CLI::App& app) {
  const auto processes = open_processes();
  std::optional<Setup> setup;
  if (const int code = together(*processes, [&] { setup.emplace(arguments, app, *processes); }); code != kDone)
    return code;
  Swept swept;
  try {
    swept = arguments.random.empty() ? sweep_schedules(arguments, *setup->problem, setup->sweep.tally.options(),
                                                       *setup->simulator, *processes)
                                     : sweep_random(arguments, *setup, *processes);
  } catch (...) {
    if (processes->count() == 1) throw;
    // The others wait for this one and would do so for ever.
    const Ending ending = current_ending();
    print_ending(ending.code, fmt::format("process {}: {}", processes->rank(), ending.message), arguments.console.json,
                 ending.details);
    processes->abort(ending.code);
  }
  return processes->rank() == 0 ? finish(arguments, *setup, swept, processes->count()) : kDone;
}

}  // namespace

Subcommand add_simulate(CLI::App& root) {
  CLI::App* app = root.add_subcommand("simulate", "evaluate many schedules: random ones, or those of a file");
  auto arguments = std::make_shared<SimulateArguments>();
  SimulateArguments& a = *arguments;
  a.console.add_to(*app);
  const auto between = [](std::int64_t low, std::int64_t high) { return CLI::Range(low, high); };
  app->add_option("--random", a.random, "how many random schedules, as 100k, 10M or 5G");
  app->add_option("--schedules", a.schedules, "file with one schedule a line, or - for stdin");
  app->add_option("--seed", a.seed, "of the random schedules")->capture_default_str();
  app->add_option("--recompute", a.moves, "most recomputed steps of a random schedule")
      ->capture_default_str()
      ->check(between(0, 1'000'000));
  app->add_option("--top", a.top, "how many of the best to keep")->capture_default_str()->check(between(1, 100'000));
  add_budget(*app, a.budget, "counts the schedules within it: 1.5GiB, 200MB, 12345 or 80% of the baseline peak");
  app->add_option("--on-bad-line", a.on_bad_line, "what to do with a line that is no schedule: stop or skip")
      ->capture_default_str();
  app->add_option("--checkpoint", a.checkpoint, "file that keeps the state; the same command goes on from there");
  app->add_option("--checkpoint-every", a.checkpoint_every, "how often it is written")->capture_default_str();
  app->add_option("-t,--time-limit", a.time_limit, "end after this wall time, as 10s, 5m or 2h, with what there is");
  app->add_option("-o,--output", a.output,
                  "CSV file to write: a line for every schedule of --schedules, or for the best and the Pareto set");
  app->add_option("--best", a.best, "schedule file to write: the best one");
  app->add_option("--report", a.report, "HTML page to write: histogram, Pareto set, tables");
  app->add_option("--backend", a.backend, "host, cuda or auto")->capture_default_str();
  app->add_option("--threads", a.threads, "CPU threads; default: all, divided among the processes of a machine")
      ->check(between(1, 4096));
  app->add_option("--at-once", a.at_once, "most schedules that the backend is given at once; changes no result")
      ->check(at_least_one());
  a.source.add_to(*app);
  app->footer(
      "Examples:\n"
      "  cairn simulate resnet50 --batch 8 --random 10M --recompute 20 --report sweep.html\n"
      "  cairn simulate graph.json --random 5G --checkpoint sweep.json    again after a crash, and it goes on\n"
      "  cairn simulate graph.json --schedules lines.txt -o results.csv --on-bad-line skip\n"
      "  mpirun -np 4 --bind-to none cairn simulate graph.json --random 1G --json");
  return {app, [arguments, app] { return simulate(*arguments, *app); }};
}

}  // namespace cairn::cli
