#include "cairn/pipeline/solve.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "cairn/cli/arguments.h"
#include "cairn/cli/output.h"
#include "cairn/cli/tw_curve.h"
#include "cairn/core/formats/files.h"
#include "cairn/pipeline/backend.h"
#include "cairn/solvers/decomposition/td_file.h"

namespace cairn::cli {
namespace {

struct SolveArguments {
  Console console;
  GraphArguments graph;
  SolverArguments search;
  std::string budget, output, plan, td, backend = "host", sweep;
  std::int64_t alignment = 1;
  bool peak_only = false, stream = false;
};

/// A schedule to report and its plan.
struct Result {
  core::Schedule schedule;
  core::Evaluation evaluation;
  std::optional<core::Plan> plan;  ///< none for a long schedule after Ctrl-C: people wait for the prompt then

  bool plan_fits(const pipeline::Problem& problem) const { return !problem.budget || plan->bytes <= *problem.budget; }
};

/// Plans what was found and writes both; found.solution.schedule may become one whose plan fits. The schedule is
/// written first, as planning a long one takes seconds.
Result finish(const pipeline::Problem& problem, const solvers::SolverInfo& solver, pipeline::Solved& found,
              const SolveArguments& arguments, const solvers::TreeDecomposition* decomposition) {
  constexpr std::int64_t kQuicklyPlanned = 20'000;  // steps
  const auto write = [&] {
    if (!arguments.output.empty())
      core::write_file(arguments.output, core::schedule_to_json(problem.graph, found.solution.schedule, solver.name));
  };
  write();
  pipeline::FitOptions options{arguments.search.options(), {.alignment = arguments.alignment}};
  options.search.decomposition = decomposition;
  options.plan.limit.stop = &catch_interrupt();
  Result result{found.solution.schedule, core::evaluate(problem.graph, found.solution.schedule), {}};
  const bool interrupted = catch_interrupt();
  if (interrupted || arguments.peak_only) {
    if (interrupted && result.schedule.length() > kQuicklyPlanned) return result;
    if (interrupted) options.plan.limit.work = 0;
    result.plan = pipeline::checked_plan(problem.graph, result.schedule, options.plan).plan;
  } else {
    result.plan = pipeline::plan_within_budget(problem, solver, options, found);
    if (found.solution.schedule.steps != result.schedule.steps) {
      result.schedule = found.solution.schedule;
      result.evaluation = found.evaluation;
      write();
    }
  }
  if (!arguments.plan.empty()) core::write_file(arguments.plan, core::plan_to_json(problem.graph, *result.plan));
  return result;
}

Json to_json(const pipeline::Problem& problem, const SolveArguments& arguments, const pipeline::Solved& found,
             const std::optional<Result>& result, const pipeline::LeastBudget& least) {
  const auto if_any = [&](auto&& get) { return result ? Json(get(*result)) : Json(nullptr); };
  const auto if_planned = [&](auto&& get) { return result && result->plan ? Json(get(*result)) : Json(nullptr); };
  Json json = describe(problem);
  json["solver"] = arguments.search.solver;
  json["status"] = solvers::to_string(found.solution.status);
  json["recomputes"] = found.solution.scope.max_occurrences != 1;
  json["scope"] = solvers::describe(found.solution.scope);
  json["lower_bound_scope"] = solvers::describe(found.solution.peak_bound.scope);
  json["lower_bound_cost"] = found.solution.cost_bound.value;
  json["lower_bound_cost_scope"] = solvers::describe(found.solution.cost_bound.scope);
  add_limits(json, problem, least);
  json["peak_bytes"] = if_any([](const Result& r) { return r.evaluation.peak; });
  json["cost"] = if_any([](const Result& r) { return r.evaluation.cost; });
  json["cost_increase_pct"] =
      if_any([&](const Result& r) { return increase_pct(r.evaluation.cost, problem.baseline.cost); });
  json["recomputed"] = if_any([](const Result& r) { return r.evaluation.recomputed; });
  json["steps"] = if_any([](const Result& r) { return r.schedule.length(); });
  json["planned_bytes"] = if_planned([](const Result& r) { return r.plan->bytes; });
  json["plan_fits"] = if_planned([&](const Result& r) { return r.plan_fits(problem); });
  json["alignment"] = arguments.alignment;
  json["valid"] = result && result->evaluation.valid();
  json["solve_seconds"] = found.seconds;
  json["best_seconds"] = found.solution.best_seconds;
  json["timed_out"] = found.solution.timed_out;
  json["interrupted"] = catch_interrupt().load();
  return json;
}

std::string table(const pipeline::Problem& problem, const SolveArguments& arguments, const pipeline::Solved& found,
                  const Result& result) {
  const auto& graph = problem.graph;
  Rows rows = {{"graph", fmt::format("{}: {} nodes, {} edges", problem.name, graph.node_count(), graph.edge_count())},
               {"solver", fmt::format("{}: {} in {:.2f} s", arguments.search.solver,
                                      solvers::to_string(found.solution.status), found.seconds)}};
  if (problem.budget) rows.push_back({"budget", bytes_text(*problem.budget)});
  rows.push_back({"peak", fmt::format("{}, {:.1f}% of the baseline's {}", bytes_text(result.evaluation.peak),
                                      100 + increase_pct(result.evaluation.peak, problem.baseline.peak),
                                      bytes_text(problem.baseline.peak))});
  std::string planned = bytes_text(result.plan->bytes);
  if (!result.plan_fits(problem))
    planned += fmt::format(": {:.1f}% above the budget, and no schedule was found whose plan fits",
                           increase_pct(result.plan->bytes, *problem.budget));
  rows.push_back({"planned", planned});
  rows.push_back({"lower bound", bytes_text(problem.lower_bound) + scope_text(found.solution.scope)});
  rows.push_back({"cost", fmt::format("{} ({:+.2f}%)", result.evaluation.cost,
                                      increase_pct(result.evaluation.cost, problem.baseline.cost))});
  rows.push_back(
      {"steps", fmt::format("{}, {} of them recomputed", result.schedule.length(), result.evaluation.recomputed)});
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

int solve(const SolveArguments& arguments) {
  const auto& solver = arguments.search.find();
  solvers::SolveOptions options = arguments.search.options();
  require_outputs({{"-o", arguments.output}, {"--plan", arguments.plan}, {"--sweep", arguments.sweep}},
                  {arguments.graph.input(), {"--td", arguments.td}});
  check_tw_outputs(arguments, options);
  const auto accelerator = pipeline::open_accelerator(arguments.backend);
  options.accelerator = accelerator.get();
  pipeline::Problem problem = arguments.graph.problem(arguments.budget);
  options.budget = problem.budget;
  const auto simulator = accelerator ? pipeline::open_simulator(arguments.backend, problem.graph) : nullptr;
  options.simulator = simulator.get();
  std::optional<solvers::TreeDecomposition> decomposition;
  if (!arguments.td.empty()) {
    decomposition =
        solvers::parse_td(core::read_file(arguments.td), arguments.td, problem.graph, {.stop = &catch_interrupt()});
    options.decomposition = &*decomposition;
  }
  if (!arguments.sweep.empty()) return write_tw_curve(arguments.console, problem, options, arguments.sweep);
  if (arguments.stream) return stream_tw_schedule(arguments.console, problem, options, arguments.output);
  pipeline::Solved found;
  {
    ProgressLine line(arguments.console);
    options.progress = line.of_search(problem, options.limit.seconds);
    found = pipeline::solve(problem.graph, solver, options);
  }

  problem.lower_bound = std::max(problem.lower_bound, found.solution.peak_bound.value);
  const bool success = found.within(problem.budget);
  std::optional<Result> result;
  if (success || catch_interrupt()) {
    // Interrupted before anything was found: the baseline is the best schedule known.
    if (found.solution.schedule.steps.empty()) found.solution.schedule = core::baseline_schedule(problem.graph);
    result = finish(problem, solver, found, arguments, options.decomposition);
  }
  const pipeline::LeastBudget least =
      pipeline::least_feasible(problem, solver, found.solution, arguments.search.options());
  const bool interrupted = catch_interrupt() && result;
  Json json = to_json(problem, arguments, found, result, least);
  if (interrupted)
    throw Failure(kInterrupted, "interrupted; " + best_so_far(problem, result->evaluation.peak, arguments.output),
                  std::move(json));
  if (!success && found.solution.status == solvers::Status::infeasible)
    throw infeasible_failure(problem, solver, options.scope, found.solution.peak_bound, least, std::move(json));
  if (!success) throw not_found_failure(problem, least, std::move(json));
  arguments.console.print(json, arguments.console.json ? "" : table(problem, arguments, found, *result));
  return kDone;
}

}  // namespace

Subcommand add_solve(CLI::App& root) {
  CLI::App* app = root.add_subcommand("solve", "find a schedule under a memory budget");
  auto arguments = std::make_shared<SolveArguments>();
  arguments->console.add_to(*app);
  add_budget(*app, arguments->budget,
             "1.5GiB, 200MB, 12345 (bytes) or 80% of the baseline peak; absent: the least peak");
  arguments->search.add_to(*app, "10s");
  app->add_option("-o,--output", arguments->output, "schedule file to write");
  app->add_option("--plan", arguments->plan, "plan file to write: where every tensor lives");
  app->add_option("--td", arguments->td,
                  "PACE .td file: the tree decomposition of the graph that the solver is to use");
  app->add_option("--backend", arguments->backend, "host, cuda or auto: where large tables of solvers are filled")
      ->capture_default_str();
  app->add_flag("--peak-only", arguments->peak_only,
                "the budget is on the peak of the schedule, not on the height of its plan too: no search for another");
  app->add_option("--sweep", arguments->sweep,
                  "CSV file to write, with --solver tw: peak, steps and cost of TWRemat(k) for k from n to 1");
  app->add_flag(
      "--stream", arguments->stream,
      "with --solver tw --option k=K: write TWRemat(K) to -o step by step, however long it is, without a plan");
  add_alignment(*app, arguments->alignment);
  arguments->graph.add_to(*app);
  std::string footer = "Solvers:\n";
  for (const auto& info : solvers::registry()) {
    const std::string graphs = info.graphs == "any" ? "" : fmt::format("; {} graphs only", info.graphs);
    footer += fmt::format("  {:<12} {}{}\n", info.name, info.guarantee, graphs);
  }
  app->footer(footer +
              "Examples:\n"
              "  cairn solve graph.json --budget 80% -o s.json\n"
              "  cairn solve resnet50 --batch 8 --solver tw --budget 1.5GiB --time-limit 30s --json");
  return {app, [arguments] { return solve(*arguments); }};
}

}  // namespace cairn::cli
