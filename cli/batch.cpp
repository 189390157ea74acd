#include "cairn/cli/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "cairn/core/text.h"
#include "cairn/models/registry.h"

namespace cairn::cli {

bool takes_batch(const GraphArguments& graph) {
  if (!pipeline::GraphSource{graph.name, {}}.is_model()) return false;
  const auto options = models::find_model(graph.name).options;
  return std::any_of(options.begin(), options.end(), [](const auto& option) { return option.name == "batch"; });
}

pipeline::LargestBatch largest_batch(const GraphArguments& graph, const ObjectiveArguments& objective,
                                     const AlignmentChoice& alignment, const SolverArguments& search,
                                     const Console& console, const core::Limit& limit) {
  const std::string& text = objective.budget;
  if (!objective.device.given() && (text.empty() || text == "min" || text.find('%') != std::string::npos))
    throw core::InputError("--batch auto needs --device-memory, or a --budget in bytes, as 8GiB");
  if (!takes_batch(graph))
    throw core::InputError(fmt::format("--batch auto is about models with a batch, and '{}' is none", graph.name));
  pipeline::LargestBatchOptions options;
  options.budget = [&](const core::Graph& one) {
    return objective.device.given() ? objective.device.share(one).arena() : parse_size("--budget", text);
  };
  options.alignment = alignment.given;
  options.least.search = search.options();
  options.least.search.limit = limit;
  ProgressLine line(console);
  options.progress = [&](std::int64_t batch) { line.show(fmt::format("looking for the largest batch: {}", batch)); };
  GraphArguments any = graph;
  any.batch_auto = false;
  return pipeline::find_largest_batch(any.model(), search.find(), options);
}

Json to_json(const pipeline::LargestBatch& found) {
  return {{"batch", found.batch},
          {"batch_of_baseline", found.as_it_is},
          {"refused", found.refused > 0 ? Json(found.refused) : Json(nullptr)},
          {"refused_proved", found.refusal_proved},
          {"timed_out", found.timed_out}};
}

std::string text_of(const pipeline::LargestBatch& found) {
  if (found.batch == 0)
    return found.refusal_proved ? "none: 1 is proved too large"
                                : "none found: no schedule of a batch of 1 that fits was found in time";
  const std::string without =
      found.as_it_is == found.batch ? "as it is" : fmt::format("{} without Cairn", found.as_it_is);
  const std::string above = found.refused == 0     ? ""
                            : found.refusal_proved ? fmt::format("; {} is proved too large", found.refused)
                                                   : fmt::format("; no schedule was found for {}", found.refused);
  return fmt::format("{} ({}){}{}", found.batch, without, above, found.timed_out ? "; the time ended the search" : "");
}

GraphArguments with_largest_batch(GraphArguments graph, const ObjectiveArguments& objective,
                                  const AlignmentChoice& alignment, const SolverArguments& search,
                                  const Console& console) {
  const pipeline::LargestBatch found =
      largest_batch(graph, objective, alignment, search, console, core::Stopwatch(search.options().limit).share(0.5));
  if (catch_interrupt())
    throw Failure(kInterrupted,
                  fmt::format("interrupted while the largest batch was sought; so far: {}", text_of(found)),
                  {{"largest_batch", to_json(found)}});
  if (found.batch == 0)
    throw Failure(found.refusal_proved ? kInfeasible : kNotFound,
                  fmt::format("no batch of '{}' fits: {}", graph.name, text_of(found)),
                  {{"largest_batch", to_json(found)}});
  graph.batch_auto = false;
  graph.model_options["batch"] = found.batch;
  if (!console.quiet) std::cerr << fmt::format("cairn: --batch auto: {}\n", text_of(found));
  return graph;
}

}  // namespace cairn::cli
