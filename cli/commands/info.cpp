#include "cairn/pipeline/info.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "cairn/cli/arguments.h"
#include "cairn/cli/batch.h"
#include "cairn/cli/objective.h"
#include "cairn/cli/output.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/support/text.h"
#include "cairn/pipeline/device_memory.h"
#include "cairn/report/pages.h"
#include "cairn/report/support/json.h"
#include "cairn/report/support/words.h"
#include "cairn/solvers/decomposition/td_file.h"
#include "cairn/solvers/decomposition/treewidth.h"
#include "cairn/solvers/fit/link_worth.h"
#include "cairn/solvers/fit/objective.h"

namespace cairn::cli {
namespace {

struct InfoArguments {
  Console console;
  GraphArguments graph;
  SolverArguments search;
  AlignmentChoice alignment;
  GraphOutputs outputs;
  ObjectiveArguments objective;  ///< a budget or a device's memory, if given
  std::string td, witness, witness_plan, report;
  bool explain = false;
};

/// Searches for a tree decomposition of small width, and writes the best one to a file.
solvers::Treewidth write_decomposition(const InfoArguments& arguments, const core::Graph& graph) {
  constexpr double kShare = 0.5;  // fraction of the time limit; the search for the least budget gets the rest
  solvers::SolveOptions options = arguments.search.options();
  options.limit = core::Stopwatch(from_start(options.limit)).share(kShare);
  ProgressLine line(arguments.console);
  line.name_phase("decomposing the graph");
  solvers::Treewidth found = solvers::find_treewidth(graph, {.limit = options.limit, .seed = options.seed});
  write_output(arguments.td, [&] { return solvers::td_text(found.decomposition, graph.node_count()); });
  return found;
}

std::string treewidth_text(const solvers::Treewidth& found) {
  const std::int32_t width = found.decomposition.width;
  return fmt::format(
      "{}: {} bags by {}",
      width == found.lower ? fmt::format("{}, proved", width) : fmt::format("from {} to {}", found.lower, width),
      found.decomposition.bags.size(), found.by);
}

void write_witness(const InfoArguments& arguments, const core::Graph& graph, const fit::LeastBudget& least) {
  write_output(arguments.witness,
               [&] { return core::schedule_to_json(graph, least.schedule, std::string(least.solver), least.plan); });
  write_output(arguments.witness_plan, [&] { return core::plan_to_json(graph, least.plan.value()); });
}

/// Sets two fields of `device`, as advice for a device that is too small: the smallest device memory that suffices, and
/// the largest batch that fits into the given device.
void advise(const InfoArguments& arguments, const fit::LeastBudget& least, const core::Limit& limit,
            pipeline::DeviceAdvice& device) {
  device.least_memory = device.share.beside_arena() + least.memory();
  if (!takes_batch(arguments.graph) || catch_interrupt()) return;
  device.largest_batch = largest_batch(arguments.graph, arguments.objective, arguments.alignment, arguments.search,
                                       arguments.console, limit);
}

/// Throws a Failure that says that the resident tensors leave no device memory for the arena. No schedule helps then,
/// but a smaller batch may, so the message names the largest batch that fits.
[[noreturn]] void refuse_device(const InfoArguments& arguments, const core::Graph& graph,
                                const pipeline::DeviceShare& share) {
  pipeline::DeviceAdvice device{share, {}, {}};
  std::string batch;
  if (takes_batch(arguments.graph)) {
    device.largest_batch = largest_batch(arguments.graph, arguments.objective, arguments.alignment, arguments.search,
                                         arguments.console, from_start(arguments.search.options().limit));
    batch = fmt::format("\nlargest batch: {}", report::batch_text(*device.largest_batch));
  }
  const std::string name = fit::graph_name(graph, arguments.graph.name);
  Json json{{"graph", name}, {"fits", false}, {"device", to_json(device)}};
  json["resident"] = to_json(pipeline::resident_bytes(graph));
  throw Failure(kInfeasible, fmt::format("{}, without an arena{}", report::no_room_text(name, share), batch),
                std::move(json));
}

/// Adds the cost per sample of the largest batch to the output. This is the cost of the cheapest schedule known within
/// the budget, divided by the batch. `batch` is 0 if no batch was searched for.
void add_sample_cost(std::int64_t batch, const fit::Problem& problem,
                     const std::optional<pipeline::BudgetVerdict>& verdict, Json& json, Rows& rows) {
  if (batch == 0) return;
  const auto of_sample = [&](std::int64_t cost) { return static_cast<double>(cost) / static_cast<double>(batch); };
  const std::int64_t baseline = problem.baseline.cost;
  const bool known = verdict && verdict->by;
  json["batch"] = batch;
  json["baseline_cost_per_sample"] = of_sample(baseline);
  json["cost_per_sample"] = known ? Json(of_sample(verdict->by->evaluation.cost)) : Json(nullptr);
  if (!known) return;
  const std::int64_t cost = verdict->by->evaluation.cost;
  rows.push_back({"cost per sample", fmt::format("{} ({:+.2f}%), with a batch of {}",
                                                 cost_with_unit(problem, std::llround(of_sample(cost))),
                                                 increase_pct(cost, baseline), batch)});
}

/// Fraction of the time limit for everything except describe_link(), which searches for the savings by the link.
constexpr double kShareBesideLink = 0.85;

/// Finds out how much memory or cost schedules save by using the link to host memory, and adds this to the output. Also
/// adds the transfers of the cheapest schedule known within the budget.
void describe_link(const fit::Task& task, const fit::LeastBudget& least,
                   const std::optional<pipeline::BudgetVerdict>& verdict, const core::Limit& limit, Json& json,
                   Rows& rows) {
  const fit::Problem& problem = task.problem;
  const fit::LinkWorth worth = fit::link_worth(problem, task.rounded, least.tradeoffs, task.planning(), limit);
  if (verdict && verdict->by) {
    const fit::LeastBudget& by = *verdict->by;
    const core::Plan* plan = by.plan ? &*by.plan : nullptr;
    report::add_transfers(json, problem.graph, &by.schedule, plan);
    const Rows transfers = report::transfer_rows(problem.graph, by.schedule, plan);
    rows.insert(rows.end(), transfers.begin(), transfers.end());
  } else {
    rows.push_back({"link", core::describe(problem.graph.host_memory()->link)});
  }
  report::add_link_worth(json, problem, worth);
  rows.push_back({"link pays", report::link_worth_text(problem, worth)});
}

int show_info(const InfoArguments& arguments) {
  arguments.search.find();
  std::vector<NamedPath> paths = arguments.outputs.paths();
  paths.push_back({"--report", arguments.report});
  paths.insert(paths.end(),
               {{"--td", arguments.td}, {"--witness", arguments.witness}, {"--witness-plan", arguments.witness_plan}});
  require_outputs(paths, {arguments.graph.input()});
  const std::optional<pipeline::DeviceMemory> memory = arguments.objective.device.given_memory();
  if (!arguments.objective.max_cost.empty() && arguments.graph.found_batch == 0)
    throw core::InputError(
        "--max-cost of info is for --batch auto; 'cairn solve --max-cost' finds the least peak for a cost");
  if (arguments.objective.budget == "min")
    throw core::InputError("--budget min is for solve and run; info says the least budget without it");
  core::Graph graph = arguments.graph.load();
  arguments.outputs.write(graph);
  std::optional<pipeline::DeviceAdvice> device;
  if (memory) device.emplace(pipeline::DeviceAdvice{pipeline::share_device(graph, *memory), {}, {}});
  if (device && device->share.arena() <= 0) refuse_device(arguments, graph, device->share);
  std::optional<solvers::Treewidth> treewidth;
  if (!arguments.td.empty()) treewidth = write_decomposition(arguments, graph);
  ObjectiveArguments objective = arguments.objective;
  objective.max_cost.clear();  // --max-cost limits only the search for the batch, which is over
  fit::Task task = objective.task(std::move(graph), arguments.graph.name, arguments.alignment, arguments.search);
  const fit::Problem& problem = task.problem;

  solvers::SolveOptions search = arguments.search.options();
  const std::int64_t work = fit::least_budget_work(search.limit);
  search.limit = until_answer(search.limit, problem.graph);
  const core::Stopwatch watch(search.limit);
  const bool link = problem.graph.host_memory().has_value();
  if (link) search.limit.seconds *= kShareBesideLink;
  pipeline::Info info;
  {
    ProgressLine line(arguments.console);
    search.progress = line.of_search(problem, search.limit.seconds);
    const std::optional<fit::LeastBudget> known = remembered(task, arguments.search);
    info = pipeline::find_info(task, arguments.search.find(), search, work, known ? &*known : nullptr);
    info.least = remember(task, arguments.search, std::move(info.least));
  }
  const fit::LeastBudget& least = info.least;
  const std::optional<pipeline::BudgetVerdict>& verdict = info.verdict;
  write_witness(arguments, problem.graph, least);

  write_output(arguments.report, [&] {
    std::vector<report::ReportFact> facts;
    if (verdict) facts.push_back({"Budget", core::format_bytes(*problem.budget), report::fit_text(task, *verdict)});
    return report::info_page(problem, least, verdict ? verdict->by : std::nullopt, std::move(facts));
  });

  if (device && verdict->fits != true) advise(arguments, least, watch.rest(), *device);
  const bool stopped = catch_interrupt();
  const pipeline::DeviceAdvice* shown_device = device ? &*device : nullptr;
  Json json = report::info_json(task, info, shown_device, stopped);
  Rows rows = report::info_rows(task, info, shown_device);
  if (treewidth) {
    json["treewidth_upper"] = treewidth->decomposition.width;
    json["treewidth_lower"] = treewidth->lower;
    json["treewidth_by"] = treewidth->by;
    json["bags"] = treewidth->decomposition.bags.size();
    rows.push_back({"treewidth", treewidth_text(*treewidth)});
  }
  add_sample_cost(arguments.graph.found_batch, problem, verdict, json, rows);
  if (link) describe_link(task, least, verdict, watch.rest(), json, rows);
  const Explanation explanation(problem.graph, verdict && verdict->by ? &verdict->by->schedule : nullptr);
  explanation.add_to(json);
  const bool failed = stopped || (verdict && verdict->fits != true);
  // Prints the table even if the command fails. With --json, the object of the failure has the results.
  if (!failed || !arguments.console.json)
    arguments.console.print(json, format_table(rows) + explanation.text(arguments.explain));
  if (stopped)
    throw Failure(kInterrupted,
                  fmt::format("interrupted; the least budget known so far is {}, with --solver {}",
                              bytes_text(least.memory()), least.solver),
                  std::move(json));
  if (failed)
    throw Failure(verdict->fits == false ? kInfeasible : kNotFound, report::refusal_text(task, info), std::move(json));
  return kDone;
}

}  // namespace

Subcommand add_info(CLI::App& root) {
  CLI::App* app = root.add_subcommand("info", "what a graph needs: will it fit, and what is the least budget?");
  auto arguments = std::make_shared<InfoArguments>();
  arguments->console.add_to(*app);
  add_budget(*app, arguments->objective.budget, "bytes of the plan: 1.5GiB, 200MB, 12345, or 80% of the baseline peak");
  arguments->objective.device.add_to(*app);
  app->add_option(
      "--max-cost", arguments->objective.max_cost,
      "with --batch auto: the most that a step may cost: 10% above the baseline's, 1.1x, or a cost as 12345");
  add_link(*app, arguments->objective.link, arguments->objective.host_budget);
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
  arguments->graph.precision.add_to(*app);
  arguments->graph.add_to(*app);
  app->footer(
      "Exit codes: 3 where the budget is proved too small, 4 where nothing that fits was found.\n"
      "Examples:\n"
      "  cairn info graph.json\n"
      "  cairn info graph.json --witness s.json --witness-plan p.json    how the least budget is met\n"
      "  cairn info trace.log -o graph.json                 any readable format as Cairn JSON\n"
      "  cairn info graph.json --td graph.td -t 60s         its treewidth, for solve --solver tw --td\n"
      "  cairn info gpt2 --batch 8 --seq 256 --budget 2GiB\n"
      "  cairn info gpt2 --batch 8 --link pcie4             whether moving tensors to the host pays\n"
      "  cairn info gpt2 --batch auto --device-memory 24GiB the largest batch that fits\n"
      "  cairn info gpt2 --batch auto --device-memory 24GiB --max-cost 10%    and costs no more than that");
  return {app, [arguments] { return show_info(with_batch(*arguments)); }};
}

}  // namespace cairn::cli
