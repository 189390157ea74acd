#include "cairn/cli/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "cairn/core/support/text.h"
#include "cairn/models/registry.h"
#include "cairn/pipeline/request.h"

namespace cairn::cli {

bool takes_batch(const GraphArguments& graph) {
  if (!pipeline::GraphSource{graph.name, {}}.is_model()) return false;
  const auto options = models::find_model(graph.name).options;
  return std::any_of(options.begin(), options.end(), [](const auto& option) { return option.name == "batch"; });
}

fit::LargestBatch largest_batch(const GraphArguments& graph, const ObjectiveArguments& objective,
                                const AlignmentChoice& alignment, const SolverArguments& search, const Console& console,
                                const core::Limit& limit) {
  const std::string& text = objective.budget;
  if (!objective.device.given() && (text.empty() || text == "min" || text.find('%') != std::string::npos))
    throw core::InputError("--batch auto needs --device-memory, or a --budget in bytes, as 8GiB");
  if (!takes_batch(graph))
    throw core::InputError(fmt::format("--batch auto is about models with a batch, and '{}' is none", graph.name));
  fit::LargestBatchOptions options;
  options.budget = [&, device = objective.device.given_memory()](const core::Graph& one) {
    return device ? pipeline::share_device(one, *device).arena() : core::parse_budget(text, 0);
  };
  options.alignment = alignment.given;
  options.overlap_steps = objective.overlap_steps;
  options.search = search.options();
  options.search.limit = limit;
  ProgressLine line(console);
  options.progress = [&](std::int64_t batch) { line.show(fmt::format("looking for the largest batch: {}", batch)); };
  if (!objective.max_cost.empty())
    options.max_cost = [&](const fit::Problem& problem) {
      return pipeline::parse_max_cost(objective.max_cost, problem.baseline.cost);
    };
  const auto host = pipeline::parse_host_memory(objective.link, objective.host_budget);
  const auto build = [&](std::int64_t batch) { return graph.with_batch(batch).with_host_memory(host); };
  return fit::find_largest_batch(build, search.find(), options);
}

GraphArguments with_largest_batch(GraphArguments graph, const ObjectiveArguments& objective,
                                  const AlignmentChoice& alignment, const SolverArguments& search,
                                  const Console& console) {
  const fit::LargestBatch found =
      largest_batch(graph, objective, alignment, search, console, core::Stopwatch(search.options().limit).share(0.5));
  if (catch_interrupt())
    throw Failure(kInterrupted,
                  fmt::format("interrupted while the largest batch was sought; so far: {}", report::batch_text(found)),
                  {{"largest_batch", to_json(found)}});
  if (found.batch == 0)
    throw Failure(found.refusal_proved ? kInfeasible : kNotFound,
                  fmt::format("no batch of '{}' fits: {}", graph.name, report::batch_text(found)),
                  {{"largest_batch", to_json(found)}});
  graph.batch_auto = false;
  graph.model_options["batch"] = graph.found_batch = found.batch;
  if (!console.quiet) std::cerr << fmt::format("cairn: --batch auto: {}\n", report::batch_text(found));
  return graph;
}

}  // namespace cairn::cli
