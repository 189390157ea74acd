#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "cairn/cli/arguments.h"
#include "cairn/cli/batch.h"
#include "cairn/cli/device_memory.h"
#include "cairn/cli/explain.h"
#include "cairn/cli/objective.h"
#include "cairn/cli/output.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/text.h"
#include "cairn/pipeline/device_memory.h"
#include "cairn/pipeline/objective.h"
#include "cairn/pipeline/pages.h"
#include "cairn/solvers/decomposition/td_file.h"
#include "cairn/solvers/decomposition/treewidth.h"

namespace cairn::cli {
namespace {

struct InfoArguments {
  Console console;
  GraphArguments graph;
  SolverArguments search;
  AlignmentChoice alignment;
  GraphOutputs outputs;
  ObjectiveArguments objective;  ///< a budget or a device's memory
  std::string td, witness, witness_plan, report;
  bool explain = false;

  solvers::Scope scope() const { return search.options().scope; }
};

constexpr double kShareOfLeast = 0.4;   ///< of the limit under a budget, at most, for the least budget
constexpr double kShareOfBound = 0.25;  ///< of the limit under a budget, for the bound on the cost

/// What a schedule within the budget does that the baseline does not.
enum class Means : std::uint8_t { baseline, order, recomputation };
std::string_view to_string(Means means) {
  return means == Means::baseline ? "baseline" : means == Means::order ? "order" : "recomputation";
}

/// Whether the budget can be met, and by what means.
struct Verdict {
  std::optional<bool> fits = {};  ///< of the schedules in `scope`; none: not known
  std::string text;
  solvers::Scope scope = solvers::kAnySchedule;  ///< of which it is proved that none fits, where it is
  std::string_view fits_with = {};               ///< another solver, by whose schedules it fits; empty: none is known
  std::optional<Means> means = {};
  std::optional<pipeline::LeastBudget> by = {};  ///< the cheapest known within the budget
  solvers::Bound cost_bound = {};                ///< of those that are asked for; means nothing where none fits
};

Verdict verdict_of(const pipeline::Problem& problem, pipeline::LeastBudget by, solvers::Bound bound) {
  const core::Evaluation& found = by.evaluation;
  Verdict verdict{.fits = true, .means = Means::recomputation, .cost_bound = bound};
  if (by.solver == "none") {
    verdict.means = Means::baseline;
    verdict.text = "fits as it is, in the baseline order";
  } else if (found.recomputed == 0) {
    verdict.means = Means::order;
    verdict.text = "fits by another order, without recomputation";
  } else {
    verdict.text = fmt::format("fits by recomputing {} of {} steps, cost {:+.2f}%", found.recomputed,
                               by.schedule.length(), increase_pct(found.cost, problem.baseline.cost));
  }
  verdict.by = std::move(by);
  return verdict;
}

/// By the same search as `solve` and `run`. May find a lower budget feasible than `least`.
Verdict judge_budget(const InfoArguments& arguments, const pipeline::Task& task, const core::Stopwatch& watch,
                     pipeline::LeastBudget& least) {
  const pipeline::Problem& problem = task.problem;
  const std::int64_t budget = problem.budget.value();
  const solvers::Bound every_node_once{problem.baseline.cost, solvers::kAnySchedule};
  if (budget < task.rounded.plan_bound()) return {.fits = false, .text = "does not fit: below the lower bound"};
  if (auto baseline = pipeline::baseline_within(problem, task.rounded, budget,
                                                {.alignment = task.alignment, .limit = watch.share(0.2)}))
    return verdict_of(problem, *std::move(baseline), every_node_once);
  solvers::SolveOptions options = arguments.search.options();
  options.limit = watch.share(1 - kShareOfBound);
  pipeline::Answer answer;
  {
    ProgressLine line(arguments.console);
    options.progress = line.of_search(problem, options.limit.seconds);
    answer = pipeline::search(task, arguments.search.find(), options, {}, &least);
  }
  const solvers::Solution& solution = answer.found.solution;
  solvers::Bound bound = every_node_once;
  if (solution.cost_bound.value > bound.value && solution.cost_bound.scope.contains(arguments.scope()))
    bound = solution.cost_bound;
  if (answer.success) {
    pipeline::LeastBudget by = pipeline::least_budget_after(task, answer, arguments.search.find(), options);
    if (by.bytes < least.bytes) least = by;
    return verdict_of(problem, std::move(by), bound);
  }
  const bool proved = solution.status == solvers::Status::infeasible;
  const solvers::Scope& scope = solution.peak_bound.scope;
  if (proved && scope == solvers::kAnySchedule) return {.fits = false, .text = "does not fit: proved"};
  options.limit = watch.rest();
  const pipeline::LeastBudget other = pipeline::least_known(problem, task.rounded, arguments.search.find(), least,
                                                            {.search = options, .plan = {.alignment = task.alignment}});
  Verdict verdict{.cost_bound = bound};
  if (proved) {
    verdict.fits = false;
    verdict.scope = scope;
  }
  verdict.text = proved ? fmt::format("does not fit{}: proved", scope_text(scope))
                        : "not known: none that fits was found in time, and none is excluded";
  if (other.bytes <= budget) {
    verdict.fits_with = other.solver;
    verdict.text += fmt::format("; fits with --solver {}", other.solver);
  } else if (proved) {
    verdict.text += "; not known otherwise";
  }
  return verdict;
}

/// Raises the bound on the cost, where there is a gap, in the time that the search left for it.
void raise_cost_bound(const InfoArguments& arguments, const pipeline::Task& task, const core::Stopwatch& watch,
                      Verdict& verdict) {
  const std::optional<std::int64_t> cost =
      verdict.by ? std::optional(verdict.by->evaluation.cost) : std::optional<std::int64_t>();
  if (verdict.fits == false || cost == verdict.cost_bound.value || catch_interrupt()) return;
  solvers::SolveOptions options = arguments.search.options();
  options.limit = watch.rest();
  if (options.limit.counts_work())
    options.limit = core::Stopwatch(arguments.search.options().limit).share(kShareOfBound);
  const std::optional<solvers::Bound> bound = pipeline::least_cost_bound(task.rounded, options, cost);
  if (!bound && options.scope.order == solvers::OrderRule::free) {
    if (verdict.by)
      throw pipeline::DefectError("a bound on the cost excludes a schedule that fits; please report this");
    verdict = {.fits = false, .text = "does not fit: proved"};
  } else if (!bound && verdict.fits != true) {
    verdict.fits = false;
    verdict.scope = {options.scope.order, 0};
    verdict.text = fmt::format("does not fit{}: proved; not known otherwise", scope_text(verdict.scope));
  }
  if (bound && bound->value > verdict.cost_bound.value) verdict.cost_bound = *bound;
}

std::string cost_text(const pipeline::Problem& problem, const Verdict& verdict) {
  const auto text = [&](std::int64_t cost) {
    return fmt::format("{} ({:+.2f}%)", cost_with_unit(problem, cost), increase_pct(cost, problem.baseline.cost));
  };
  const std::int64_t bound = verdict.cost_bound.value;
  const std::string scope = scope_text(verdict.cost_bound.scope);
  if (!verdict.by) return fmt::format("at least {} within the budget{}", text(bound), scope);
  const std::int64_t cost = verdict.by->evaluation.cost;
  if (cost == bound) return fmt::format("{}: no schedule within the budget{} costs less", text(cost), scope);
  return fmt::format("{}, at most {:.2f}% above the optimum: no schedule within the budget{} costs less than {}",
                     text(cost), pipeline::gap_pct(cost, verdict.cost_bound), scope, text(bound));
}

/// Writes the best decomposition found within the limit.
solvers::Treewidth write_decomposition(const InfoArguments& arguments, const core::Graph& graph) {
  constexpr double kShare = 0.5;  // the least budget has the rest
  solvers::SolveOptions options = arguments.search.options();
  options.limit = core::Stopwatch(from_start(options.limit)).share(kShare);
  ProgressLine line(arguments.console);
  line.name_phase("decomposing the graph");
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

void write_witness(const InfoArguments& arguments, const core::Graph& graph, const pipeline::LeastBudget& least) {
  if (!arguments.witness.empty())
    core::write_file(arguments.witness, core::schedule_to_json(graph, least.schedule, std::string(least.solver)));
  if (!arguments.witness_plan.empty())
    core::write_file(arguments.witness_plan, core::plan_to_json(graph, least.plan.value()));
}

Json reached_json(const pipeline::Problem& problem, const pipeline::LeastBudget& by) {
  const core::Evaluation& found = by.evaluation;
  return {{"planned_bytes", by.bytes},
          {"peak_bytes", found.peak},
          {"cost", found.cost},
          {"cost_increase_pct", increase_pct(found.cost, problem.baseline.cost)},
          {"recomputed", found.recomputed},
          {"steps", by.schedule.length()}};
}

void add_verdict(Json& json, const pipeline::Problem& problem, const Verdict& verdict) {
  const bool bounded = verdict.fits != false;
  json["fits"] = or_null(verdict.fits);
  json["fits_scope"] = solvers::describe(verdict.scope);
  json["fits_with_solver"] = verdict.fits_with.empty() ? Json(nullptr) : Json(verdict.fits_with);
  json["verdict"] = verdict.text;
  json["means"] = verdict.means ? Json(to_string(*verdict.means)) : Json(nullptr);
  json["within_budget"] = verdict.by ? reached_json(problem, *verdict.by) : Json(nullptr);
  json["recomputed"] = verdict.by ? Json(verdict.by->evaluation.recomputed) : Json(nullptr);
  json["cost_within_budget"] = verdict.by ? Json(verdict.by->evaluation.cost) : Json(nullptr);
  json["lower_bound_cost"] = bounded ? Json(verdict.cost_bound.value) : Json(nullptr);
  json["lower_bound_cost_scope"] = solvers::describe(verdict.cost_bound.scope);
  json["gap_pct"] =
      verdict.by ? Json(pipeline::gap_pct(verdict.by->evaluation.cost, verdict.cost_bound)) : Json(nullptr);
}

std::string least_text(const pipeline::Task& task, const pipeline::LeastBudget& least) {
  std::string text = fmt::format("{}, {:.1f}% of the baseline, with --solver {}", bytes_text(least.bytes),
                                 share_pct(task.problem, least.bytes), least.solver);
  if (least.evaluation.recomputed > 0)
    text += fmt::format(", cost {:+.2f}% or less", increase_pct(least.evaluation.cost, task.problem.baseline.cost));
  return text + (least.proved() ? fmt::format("; proved least{}", scope_text(least.bound.scope)) : "");
}

/// What helps where a device is too small: the least device, and the largest batch.
void advise(const InfoArguments& arguments, const pipeline::DeviceShare& share, const pipeline::LeastBudget& least,
            const core::Stopwatch& watch, Json& json, Rows& rows) {
  const std::int64_t device = share.beside_arena() + least.bytes;
  json["device"]["least_memory_bytes"] = device;
  rows.push_back({"least device", share_text(share, least.bytes)});
  if (!takes_batch(arguments.graph) || catch_interrupt()) return;
  const pipeline::LargestBatch found = largest_batch(arguments.graph, arguments.objective, arguments.alignment,
                                                     arguments.search, arguments.console, watch.rest());
  json["device"]["largest_batch"] = to_json(found);
  rows.push_back({"largest batch", text_of(found)});
}

/// What is resident alone is too much: no schedule helps, but a smaller batch may.
[[noreturn]] void refuse_device(const InfoArguments& arguments, const core::Graph& graph,
                                const pipeline::DeviceShare& share) {
  Json json{{"graph", arguments.graph.name}, {"fits", false}, {"device", to_json(share)}};
  json["resident"] = to_json(pipeline::resident_bytes(graph));
  std::string batch;
  if (takes_batch(arguments.graph)) {
    const pipeline::LargestBatch found =
        largest_batch(arguments.graph, arguments.objective, arguments.alignment, arguments.search, arguments.console,
                      from_start(arguments.search.options().limit));
    json["device"]["largest_batch"] = to_json(found);
    batch = fmt::format("; largest batch: {}", text_of(found));
  }
  throw Failure(kInfeasible,
                fmt::format("'{}' does not fit into --device-memory {}: {}, without an arena{}", arguments.graph.name,
                            core::format_bytes(share.device), share_text(share, 0), batch),
                std::move(json));
}

int show_info(const InfoArguments& arguments) {
  arguments.search.find();
  std::vector<NamedPath> paths = arguments.outputs.paths();
  paths.push_back({"--report", arguments.report});
  paths.insert(paths.end(),
               {{"--td", arguments.td}, {"--witness", arguments.witness}, {"--witness-plan", arguments.witness_plan}});
  require_outputs(paths, {arguments.graph.input()});
  if (!arguments.objective.device.given() && !arguments.objective.device.context.empty())
    throw core::InputError("--context-memory is a part of --device-memory; give that too");
  if (arguments.objective.budget == "min")
    throw core::InputError("--budget min is for solve and run; info says the least budget without it");
  core::Graph graph = arguments.graph.load();
  arguments.outputs.write(graph);
  std::optional<pipeline::DeviceShare> share;
  if (arguments.objective.device.given()) share = arguments.objective.device.share(graph);
  if (share && share->arena() <= 0) refuse_device(arguments, graph, *share);
  std::optional<solvers::Treewidth> treewidth;
  if (!arguments.td.empty()) treewidth = write_decomposition(arguments, graph);
  pipeline::Task task =
      arguments.objective.task(std::move(graph), arguments.graph.name, arguments.alignment, arguments.search);
  const pipeline::Problem& problem = task.problem;

  pipeline::LeastBudgetOptions asked{.search = arguments.search.options(), .plan = {.alignment = task.alignment}};
  const std::int64_t work = pipeline::least_budget_work(asked.search.limit);
  asked.search.limit = until_answer(asked.search.limit, problem.graph);
  const core::Stopwatch watch(asked.search.limit);
  // What fits is found by the same way again, if this is not the end of it.
  if (problem.budget) asked.search.limit.seconds *= kShareOfLeast;
  pipeline::LeastBudget least;
  {
    ProgressLine line(arguments.console);
    asked.search.limit.work = work;
    asked.search.progress = line.of_search(problem, asked.search.limit.seconds);
    least = pipeline::find_least_budget(problem, task.rounded, arguments.search.find(), asked);
  }
  if (least.bound.scope == solvers::kAnySchedule) {
    const std::int64_t peak = least.bound.value + task.rounded.plan_slack;
    task.rounded.lower_bound = std::max(task.rounded.lower_bound, peak);
    if (task.rounded.same_sizes(problem)) task.problem.lower_bound = std::max(problem.lower_bound, peak);
  }
  std::optional<Verdict> verdict;
  if (problem.budget) {
    verdict = judge_budget(arguments, task, watch, least);
    raise_cost_bound(arguments, task, watch, *verdict);
  }
  write_witness(arguments, problem.graph, least);

  if (!arguments.report.empty()) {
    std::vector<pipeline::ReportFact> facts;
    if (verdict) facts.push_back({"Budget", core::format_bytes(*problem.budget), verdict->text});
    core::write_file(arguments.report,
                     pipeline::info_page(problem, least, verdict ? verdict->by : std::nullopt, std::move(facts)));
  }

  Json json = describe(problem);
  json["alignment"] = task.alignment;
  json["lower_bound_planned_bytes"] = task.rounded.plan_bound();
  json["resident"] = to_json(pipeline::resident_bytes(problem.graph));
  json["cost_at_least_budget"] = least.evaluation.cost;
  json["least_budget"] = reached_json(problem, least);
  json["least_budget"]["proved"] = least.proved();
  json["least_budget"]["proved_scope"] = solvers::describe(least.bound.scope);
  if (verdict) add_verdict(json, problem, *verdict);
  if (share) json["device"] = to_json(*share);
  if (treewidth) {
    json["treewidth_upper"] = treewidth->decomposition.width;
    json["treewidth_lower"] = treewidth->lower;
    json["treewidth_by"] = treewidth->by;
    json["bags"] = treewidth->decomposition.bags.size();
  }
  add_limits(json, problem, least);
  const Explanation explanation(problem.graph, verdict && verdict->by ? &verdict->by->schedule : nullptr);
  explanation.add_to(json);
  Rows rows = {{"graph", problem.name},
               {"nodes, edges", fmt::format("{}, {}", problem.graph.node_count(), problem.graph.edge_count())},
               {"resident", resident_text(pipeline::resident_bytes(problem.graph)) + "; beside the budget"},
               {"baseline peak", baseline_peak_text(problem, task.alignment)},
               {"baseline cost", baseline_cost_text(problem)},
               {"lower bound", bytes_text(task.rounded.plan_bound())},
               {"because", lower_bound_reason(problem)},
               {"least budget known", least_text(task, least)}};
  if (treewidth) rows.push_back({"treewidth", treewidth_text(*treewidth)});
  if (share) rows.push_back({"device", share_text(*share, share->arena())});
  if (verdict) rows.push_back({"budget", bytes_text(*problem.budget) + ": " + verdict->text});
  if (verdict && verdict->fits != false) rows.push_back({"cost in it", cost_text(problem, *verdict)});
  if (share && verdict->fits != true) advise(arguments, *share, least, watch, json, rows);
  const bool stopped = catch_interrupt();
  json["interrupted"] = stopped;
  const bool failed = stopped || (verdict && verdict->fits != true);
  // What is known is shown, whatever the end.
  if (!failed || !arguments.console.json)
    arguments.console.print(json, format_table(rows) + explanation.text(arguments.explain));
  if (stopped)
    throw Failure(kInterrupted,
                  fmt::format("interrupted; the least budget known so far is {}, with --solver {}",
                              bytes_text(least.bytes), least.solver),
                  std::move(json));
  if (failed) {
    throw Failure(verdict->fits == false ? kInfeasible : kNotFound,
                  fmt::format("'{}' within {}: {}; the lower bound is {}, the least budget known feasible is {}, with "
                              "--solver {}",
                              problem.name, bytes_text(*problem.budget), verdict->text,
                              bytes_text(task.rounded.plan_bound()), bytes_text(least.bytes), least.solver),
                  std::move(json));
  }
  return kDone;
}

}  // namespace

Subcommand add_info(CLI::App& root) {
  CLI::App* app = root.add_subcommand("info", "what a graph needs: will it fit, and what is the least budget?");
  auto arguments = std::make_shared<InfoArguments>();
  arguments->console.add_to(*app);
  add_budget(*app, arguments->objective.budget, "bytes of the plan: 1.5GiB, 200MB, 12345, or 80% of the baseline peak");
  arguments->objective.device.add_to(*app);
  arguments->search.add_to(*app, "10s");
  arguments->alignment.add_to(*app);
  add_explain(*app, arguments->explain);
  arguments->outputs.add_to(*app);
  app->add_option("--report", arguments->report,
                  "HTML page to write: memory over time of the baseline and of the least budget, and what is alive");
  app->add_option("--witness", arguments->witness, "schedule file to write: it reaches the least budget known");
  app->add_option("--witness-plan", arguments->witness_plan, "plan file to write: of that schedule");
  app->add_option("--td", arguments->td,
                  "PACE .td file to write: the best tree decomposition found within the time limit, which the search "
                  "for the least budget then has again");
  arguments->graph.add_to(*app);
  app->footer(
      "Exit codes: 3 where the budget is proved too small, 4 where nothing that fits was found.\n"
      "Examples:\n"
      "  cairn info graph.json\n"
      "  cairn info graph.json --witness s.json --witness-plan p.json    how the least budget is met\n"
      "  cairn info trace.log -o graph.json                 any readable format as Cairn JSON\n"
      "  cairn info graph.json --td graph.td -t 60s         its treewidth, for solve --solver tw --td\n"
      "  cairn info gpt2 --batch 8 --seq 256 --budget 2GiB\n"
      "  cairn info gpt2 --batch auto --device-memory 24GiB the largest batch that fits");
  return {app, [arguments] { return show_info(with_batch(*arguments)); }};
}

}  // namespace cairn::cli
