#include <fmt/format.h>

#include <memory>

#include "cairn/cli/common.h"

namespace cairn::cli {
namespace {

struct InfoArguments {
  Console console;
  GraphSource source;
  Search search;
  GraphOutputs outputs;
  std::string budget;
};

/// By which means a schedule differs from the baseline order.
std::string means_of(const Problem& problem, const CheckedSolution& found) {
  if (found.evaluation.recomputed == 0) return "another order, without recomputation";
  return fmt::format("recomputing {} of {} steps, cost {:+.2f}%", found.evaluation.recomputed,
                     found.solution.schedule.length(), increase_pct(found.solution.cost, problem.baseline.cost));
}

/// Adds to `json` whether the budget can be met, and returns that in words.
std::string judge_budget(const Problem& problem, const InfoArguments& arguments, std::int64_t& least, Json& json) {
  const auto verdict = [&](Json fits, const std::string& means) {
    json["fits"] = std::move(fits);
    json["means"] = means;
    return means;
  };
  if (*problem.budget >= problem.baseline.peak) return verdict(true, "fits as it is, in the baseline order");
  if (*problem.budget < problem.lower_bound) return verdict(false, "does not fit: below the lower bound");

  solvers::SolveOptions options = arguments.search.options();
  options.budget = problem.budget;
  ProgressLine line(arguments.console, problem, options.limit.seconds);
  options.progress = line.callback();
  const auto& solver = arguments.search.find();
  const auto found = solve_checked(solver, problem.graph, options);
  if (found.within(problem.budget)) {
    least = std::min(least, found.solution.peak);
    return verdict(true, "fits by " + means_of(problem, found));
  }
  if (found.solution.status == solvers::Status::infeasible) {
    if (found.solution.scope.max_occurrences != 1) return verdict(false, "does not fit: proved");
    return verdict(nullptr, "does not fit without recomputation: proved; not known with it");
  }
  return verdict(nullptr, "not known: no schedule was found within the time limit, and none is excluded");
}

int show_info(const InfoArguments& arguments) {
  const auto& solver = arguments.search.find();
  require_outputs(arguments.outputs.paths(), {arguments.source.input()});
  const Problem problem(arguments.source, arguments.budget);
  arguments.outputs.write(problem.graph);
  solvers::SolveOptions options = arguments.search.options();
  CheckedSolution lowest;
  {
    ProgressLine line(arguments.console, problem, options.limit.seconds);
    options.progress = line.callback();
    lowest = solve_checked(solver, problem.graph, options);
  }
  std::int64_t least = least_feasible(problem, lowest.solution, arguments.search);
  Json json = problem.describe();
  json["cost_at_least_budget"] = lowest.within(std::nullopt) ? Json(lowest.solution.cost) : Json(nullptr);
  std::string verdict;
  if (problem.budget) verdict = judge_budget(problem, arguments, least, json);
  json["least_feasible_bytes"] = least;
  json["interrupted"] = catch_interrupt().load();
  std::vector<std::vector<std::string>> rows = {
      {"graph", problem.name},
      {"nodes, edges", fmt::format("{}, {}", problem.graph.node_count(), problem.graph.edge_count())},
      {"resident", bytes_text(problem.graph.resident_bytes()) + ", beside the budget"},
      {"baseline peak", bytes_text(problem.baseline.peak)},
      {"baseline cost", std::to_string(problem.baseline.cost)},
      {"lower bound", bytes_text(problem.lower_bound)},
      {"least budget known", fmt::format("{}, {:.1f}% of the baseline", bytes_text(least),
                                         100 + increase_pct(least, problem.baseline.peak))}};
  if (problem.budget) rows.push_back({"budget", bytes_text(*problem.budget) + ": " + verdict});
  arguments.console.print(json, format_table(rows, false));
  return catch_interrupt() ? kInterrupted : kDone;
}

}  // namespace

Subcommand add_info(CLI::App& root) {
  CLI::App* app = root.add_subcommand("info", "what a graph needs: will it fit, and what is the least budget?");
  auto arguments = std::make_shared<InfoArguments>();
  arguments->console.add_to(*app);
  add_budget(*app, arguments->budget, "1.5GiB, 200MB, 12345 (bytes) or 80% of the baseline peak");
  arguments->search.add_to(*app, "5s");
  arguments->outputs.add_to(*app);
  arguments->source.add_to(*app);
  app->footer(
      "Examples:\n"
      "  cairn info graph.json\n"
      "  cairn info trace.log -o graph.json                 any readable format as Cairn JSON\n"
      "  cairn info gpt2 --batch 8 --seq 256 --budget 2GiB");
  return {app, [arguments] { return show_info(*arguments); }};
}

}  // namespace cairn::cli
