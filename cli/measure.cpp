#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cairn/cli/arguments.h"
#include "cairn/cli/output.h"
#include "cairn/core/formats/files.h"
#include "cairn/pipeline/backend.h"

namespace cairn::cli {
namespace {

struct MeasureArguments {
  Console console;
  GraphArguments graph;
  BackendChoice backend;
  std::string output;
};

int measure(const MeasureArguments& arguments) {
  require_outputs({{"-o", arguments.output}}, {arguments.graph.input()});
  const auto backend = pipeline::open_backend(arguments.backend.backend);
  const auto given = pipeline::prepare(*backend, arguments.graph.source(), arguments.backend.given());
  const core::Graph& graph = given.prepared;
  runtime::MeasuredGraph result;
  {
    ProgressLine line(arguments.console);
    result = pipeline::measure(*backend, given, [&](core::NodeId v) {
      if (catch_interrupt())
        throw Failure(kInterrupted,
                      "interrupted while measuring; nothing was written, as half the costs are estimates");
      if (line.active()) line.show(fmt::format("measuring node {} of {}", v + 1, graph.node_count()));
    });
  }
  if (!arguments.output.empty()) core::write_file(arguments.output, core::graph_to_json(result.graph));

  const auto before = core::evaluate(graph, core::baseline_schedule(graph));
  const auto after = core::evaluate(result.graph, core::baseline_schedule(result.graph));
  const std::string name = graph.name().empty() ? arguments.graph.name : graph.name();
  const std::string precision(core::to_string(given.precision));
  Json json;
  json["graph"] = name;
  json["backend"] = backend->name();
  json["device"] = backend->device();
  if (const std::string note = backend->note(); !note.empty()) json["note"] = note;
  json["precision"] = precision;
  json["nodes"] = graph.node_count();
  json["measured_nodes"] = result.measured_nodes;
  json["distinct_ops"] = result.distinct_ops;
  json["baseline_cost_before"] = before.cost;
  json["baseline_cost_ns"] = after.cost;
  json["baseline_peak_bytes"] = after.peak;
  if (!arguments.output.empty()) json["output"] = arguments.output;
  arguments.console.print(
      json,
      format_table({{"graph", name},
                    {"device", backend->device()},
                    {"precision", precision},
                    {"measured", fmt::format("{} nodes, {} distinct ops", result.measured_nodes, result.distinct_ops)},
                    {"cost of a step",
                     fmt::format("{:.3f} ms (estimated before: {:.3f} ms)", static_cast<double>(after.cost) / 1e6,
                                 static_cast<double>(before.cost) / 1e6)},
                    {"baseline peak", bytes_text(after.peak)},
                    {"written to", written_to(arguments.output)}}));
  return kDone;
}

}  // namespace

Subcommand add_measure(CLI::App& root) {
  CLI::App* app = root.add_subcommand("measure", "time every op on this machine and write the costs into the graph");
  auto arguments = std::make_shared<MeasureArguments>();
  arguments->console.add_to(*app);
  arguments->backend.add_to(*app);
  app->add_option("-o,--output", arguments->output, "graph file to write: costs in ns, and the scratch of the kernels");
  arguments->graph.add_to(*app);
  app->footer(
      "Every op is executed alone, warmed up, on memory that is not in a cache; its cost is the median.\n"
      "Nodes without an op keep their costs.\n"
      "Examples:\n"
      "  cairn measure resnet50 --batch 8 --image 64 -o resnet50.json\n"
      "  cairn measure gpt2 --precision bf16 --backend cuda -o gpt2.json && cairn run gpt2.json --budget 50%");
  return {app, [arguments] { return measure(*arguments); }};
}

}  // namespace cairn::cli
