#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cairn/cli/arguments.h"
#include "cairn/cli/output.h"

namespace cairn::cli {
namespace {

struct ModelArguments {
  Console console;
  GraphArguments source;
  GraphOutputs outputs;
  PrecisionChoice precision;
};

std::int64_t weight_count(const core::Graph& graph) {
  std::int64_t count = 0;
  for (const auto& resident : graph.residents())
    if (resident.role == core::Resident::Role::weight) count += core::element_count(resident.shape);
  return count;
}

int write_model(const ModelArguments& arguments) {
  require_outputs(arguments.outputs.paths(), {});
  const pipeline::GraphSource source = arguments.source.model();
  const core::Graph graph = arguments.precision.stored(source, source.build());
  arguments.outputs.write(graph);

  const auto baseline = core::evaluate(graph, core::baseline_schedule(graph));
  Json json;
  json["model"] = arguments.source.name;
  json["graph"] = graph.name();
  json["fingerprint"] = graph.fingerprint();
  json["nodes"] = graph.node_count();
  json["edges"] = graph.edge_count();
  json["parameters"] = weight_count(graph);
  json["resident_bytes"] = graph.resident_bytes();
  json["baseline_peak_bytes"] = baseline.peak;
  json["baseline_cost"] = baseline.cost;
  json["cost_unit"] = core::to_string(graph.cost_unit());
  json["cost_source"] = graph.cost_unit().source;
  if (!arguments.outputs.json.empty()) json["output"] = arguments.outputs.json;
  arguments.console.print(
      json, format_table({{"model", graph.name()},
                          {"nodes, edges", fmt::format("{}, {}", graph.node_count(), graph.edge_count())},
                          {"parameters", std::to_string(weight_count(graph))},
                          {"resident", bytes_text(graph.resident_bytes())},
                          {"baseline peak", bytes_text(baseline.peak)},
                          {"baseline cost",
                           core::cost_text(baseline.cost, graph.cost_unit()) + " (" + graph.cost_unit().source + ")"},
                          {"written to", written_to(arguments.outputs.json)}}));
  return kDone;
}

}  // namespace

Subcommand add_model(CLI::App& root) {
  CLI::App* app = root.add_subcommand("model", "write a model's training step as a graph file");
  auto arguments = std::make_shared<ModelArguments>();
  arguments->console.add_to(*app);
  arguments->outputs.add_to(*app);
  arguments->precision.add_to(*app);
  arguments->source.add_to(*app, "NAME");
  app->footer(
      "Examples:\n"
      "  cairn model resnet50 --batch 8 --image 64 -o resnet50.json\n"
      "  cairn model ffn --layers 3 --dot ffn.dot && dot -Tsvg ffn.dot -o ffn.svg");
  return {app, [arguments] { return write_model(*arguments); }};
}

}  // namespace cairn::cli
