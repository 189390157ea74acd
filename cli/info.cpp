#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "cairn/cli/arguments.h"
#include "cairn/cli/explain.h"
#include "cairn/cli/output.h"
#include "cairn/core/formats/files.h"
#include "cairn/pipeline/objective.h"
#include "cairn/pipeline/solve.h"
#include "cairn/solvers/decomposition/td_file.h"
#include "cairn/solvers/decomposition/treewidth.h"

namespace cairn::cli {
namespace {

struct InfoArguments {
  Console console;
  GraphArguments graph;
  SolverArguments search;
  GraphOutputs outputs;
  std::string budget, td;
  bool explain = false;

  solvers::Scope scope() const { return search.options().scope; }
};

constexpr double kShareOfBound = 0.25;  ///< of the limit under a budget, for the bound on the cost

pipeline::Solved search_within(const InfoArguments& arguments, const pipeline::Problem& problem,
                               std::optional<std::int64_t> budget) {
  solvers::SolveOptions options = arguments.search.options();
  options.budget = budget;
  if (budget) options.limit = core::Stopwatch(options.limit).share(1 - kShareOfBound);
  ProgressLine line(arguments.console);
  options.progress = line.of_search(problem, options.limit.seconds);
  return pipeline::solve(problem.graph, arguments.search.find(), options);
}

/// Whether the budget can be met, and by what means.
struct Verdict {
  std::optional<bool> fits;  ///< none: not known
  std::string means;
  std::optional<std::int64_t> cost = {};  ///< of the cheapest schedule within the budget that is known
  solvers::Bound cost_bound = {};         ///< of those that are asked for; means nothing where none fits
};

/// `lowest`: what the search without a budget found. May find a lower budget feasible than `least`.
Verdict judge_budget(const InfoArguments& arguments, const pipeline::Problem& problem, const pipeline::Solved& lowest,
                     pipeline::LeastBudget& least) {
  if (*problem.budget >= problem.baseline.peak)
    return {true, "fits as it is, in the baseline order", problem.baseline.cost, {problem.baseline.cost}};
  if (*problem.budget < problem.lower_bound) return {false, "does not fit: below the lower bound"};

  const pipeline::Solved found = search_within(arguments, problem, problem.budget);
  solvers::Bound bound{problem.baseline.cost};  // which runs every node once
  if (found.solution.cost_bound.value > bound.value && found.solution.cost_bound.scope.contains(arguments.scope()))
    bound = found.solution.cost_bound;
  if (found.within(problem.budget)) {
    if (found.solution.least_peak < least.bytes) least = {found.solution.least_peak, found.solution.least_peak_by};
    if (found.evaluation.recomputed == 0)
      return {true, "fits by another order, without recomputation", found.solution.cost, bound};
    return {true,
            fmt::format("fits by recomputing {} of {} steps, cost {:+.2f}%", found.evaluation.recomputed,
                        found.solution.schedule.length(), increase_pct(found.solution.cost, problem.baseline.cost)),
            found.solution.cost, bound};
  }
  const std::string other = fmt::format("fits with --solver {}", least.solver);
  if (lowest.solution.least_peak > 0 && lowest.solution.least_peak <= *problem.budget) return {true, other, {}, bound};
  const bool by_other = least.bytes <= *problem.budget;
  if (found.solution.status == solvers::Status::infeasible) {
    const solvers::Scope& scope = found.solution.peak_bound.scope;
    if (scope == solvers::kAnySchedule) return {false, "does not fit: proved"};
    if (scope == solvers::kWithoutRecomputation)
      return {{},
              "does not fit without recomputation: proved; " + (by_other ? other : "not known with it"),
              {},
              {problem.baseline.cost}};
    return {{},
            fmt::format("does not fit with {}: proved; {}", solvers::describe(scope),
                        by_other ? other : "not known otherwise"),
            {},
            {problem.baseline.cost}};
  }
  if (by_other) return {{}, fmt::format("not found with --solver {}; {}", arguments.search.solver, other), {}, bound};
  return {{}, "not known: no schedule was found within the time limit, and none is excluded", {}, bound};
}

/// Raises the bound on the cost, where there is a gap, in the time that the search left for it.
void raise_cost_bound(const InfoArguments& arguments, const pipeline::Problem& problem, Verdict& verdict) {
  if (verdict.fits == false || verdict.cost == verdict.cost_bound.value || catch_interrupt()) return;
  solvers::SolveOptions options = arguments.search.options();
  options.limit = core::Stopwatch(options.limit).share(kShareOfBound);
  const std::optional<solvers::Bound> bound = pipeline::least_cost_bound(problem, options, verdict.cost);
  if (!bound && options.scope.order == solvers::OrderRule::free) {
    verdict = {false, "does not fit: proved"};
  } else if (!bound) {
    verdict.means += "; with the input order kept it does not fit: proved";
  }
  if (bound && bound->value > verdict.cost_bound.value) verdict.cost_bound = *bound;
}

std::string cost_text(const pipeline::Problem& problem, const Verdict& verdict) {
  const auto text = [&](std::int64_t cost) {
    return fmt::format("{} ({:+.2f}%)", cost, increase_pct(cost, problem.baseline.cost));
  };
  const std::int64_t bound = verdict.cost_bound.value;
  const std::string scope = scope_text(verdict.cost_bound.scope);
  if (!verdict.cost) return fmt::format("at least {} within the budget{}", text(bound), scope);
  if (verdict.cost == bound)
    return fmt::format("{}: no schedule within the budget{} costs less", text(*verdict.cost), scope);
  return fmt::format("{}, at most {:.2f}% above the optimum: no schedule within the budget{} costs less than {}",
                     text(*verdict.cost), pipeline::gap_pct(*verdict.cost, verdict.cost_bound), scope, text(bound));
}

/// Writes the best decomposition found within the limit.
solvers::Treewidth write_decomposition(const InfoArguments& arguments, const core::Graph& graph) {
  const solvers::SolveOptions options = arguments.search.options();
  solvers::Treewidth found = solvers::find_treewidth(graph, {.limit = options.limit, .seed = options.seed});
  core::write_file(arguments.td, solvers::td_text(found.decomposition, graph.node_count()));
  return found;
}

std::string treewidth_text(const solvers::Treewidth& found) {
  const std::int32_t width = found.decomposition.width;
  return fmt::format(
      "{}: {} bags by {}",
      width == found.lower ? fmt::format("{}, proved", width) : fmt::format("from {} to {}", found.lower, width),
      found.decomposition.bags.size(), found.by);
}

int show_info(const InfoArguments& arguments) {
  arguments.search.find();
  std::vector<NamedPath> paths = arguments.outputs.paths();
  paths.push_back({"--td", arguments.td});
  require_outputs(paths, {arguments.graph.input()});
  pipeline::Problem problem = arguments.graph.problem(arguments.budget);
  arguments.outputs.write(problem.graph);
  std::optional<solvers::Treewidth> treewidth;
  if (!arguments.td.empty()) treewidth = write_decomposition(arguments, problem.graph);
  const pipeline::Solved lowest = search_within(arguments, problem, {});
  if (lowest.solution.peak_bound.scope == solvers::kAnySchedule)
    problem.lower_bound = std::max(problem.lower_bound, lowest.solution.peak_bound.value);
  pipeline::LeastBudget least =
      pipeline::least_feasible(problem, arguments.search.find(), lowest.solution, arguments.search.options());
  std::optional<Verdict> verdict;
  if (problem.budget) {
    verdict = judge_budget(arguments, problem, lowest, least);
    raise_cost_bound(arguments, problem, *verdict);
  }

  Json json = describe(problem);
  json["cost_at_least_budget"] = lowest.within(std::nullopt) ? Json(lowest.solution.cost) : Json(nullptr);
  if (verdict) {
    json["fits"] = or_null(verdict->fits);
    json["means"] = verdict->means;
    const bool bounded = verdict->fits != false;
    json["cost_within_budget"] = or_null(verdict->cost);
    json["lower_bound_cost"] = bounded ? Json(verdict->cost_bound.value) : Json(nullptr);
    json["lower_bound_cost_scope"] = solvers::describe(verdict->cost_bound.scope);
    json["gap_pct"] = verdict->cost ? Json(pipeline::gap_pct(*verdict->cost, verdict->cost_bound)) : Json(nullptr);
  }
  if (treewidth) {
    json["treewidth_upper"] = treewidth->decomposition.width;
    json["treewidth_lower"] = treewidth->lower;
    json["treewidth_by"] = treewidth->by;
    json["bags"] = treewidth->decomposition.bags.size();
  }
  add_limits(json, problem, least);
  const Explanation explanation(problem.graph);
  explanation.add_to(json);
  json["interrupted"] = catch_interrupt().load();
  Rows rows = {
      {"graph", problem.name},
      {"nodes, edges", fmt::format("{}, {}", problem.graph.node_count(), problem.graph.edge_count())},
      {"resident", bytes_text(problem.graph.resident_bytes()) + ", beside the budget"},
      {"baseline peak", bytes_text(problem.baseline.peak)},
      {"baseline cost", std::to_string(problem.baseline.cost)},
      {"lower bound", bytes_text(problem.lower_bound)},
      {"because", lower_bound_reason(problem)},
      {"least budget known", fmt::format("{}, {:.1f}% of the baseline, with --solver {}", bytes_text(least.bytes),
                                         100 + increase_pct(least.bytes, problem.baseline.peak), least.solver)}};
  if (treewidth) rows.push_back({"treewidth", treewidth_text(*treewidth)});
  if (verdict) rows.push_back({"budget", bytes_text(*problem.budget) + ": " + verdict->means});
  if (verdict && verdict->fits != false) rows.push_back({"cost in it", cost_text(problem, *verdict)});
  arguments.console.print(json, format_table(rows) + explanation.text(arguments.explain));
  return catch_interrupt() ? kInterrupted : kDone;
}

}  // namespace

Subcommand add_info(CLI::App& root) {
  CLI::App* app = root.add_subcommand("info", "what a graph needs: will it fit, and what is the least budget?");
  auto arguments = std::make_shared<InfoArguments>();
  arguments->console.add_to(*app);
  add_budget(*app, arguments->budget, "1.5GiB, 200MB, 12345 (bytes) or 80% of the baseline peak");
  arguments->search.add_to(*app, "5s");
  add_explain(*app, arguments->explain);
  arguments->outputs.add_to(*app);
  app->add_option("--td", arguments->td,
                  "PACE .td file to write: the best tree decomposition found within the time limit, which the search "
                  "for the least budget then has again");
  arguments->graph.add_to(*app);
  app->footer(
      "Examples:\n"
      "  cairn info graph.json\n"
      "  cairn info trace.log -o graph.json                 any readable format as Cairn JSON\n"
      "  cairn info graph.json --td graph.td -t 60s         its treewidth, for solve --solver tw --td\n"
      "  cairn info gpt2 --batch 8 --seq 256 --budget 2GiB");
  return {app, [arguments] { return show_info(*arguments); }};
}

}  // namespace cairn::cli
