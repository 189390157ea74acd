#include "cairn/runtime/measure.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "cairn/cli/backend.h"
#include "cairn/cli/common.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/precision.h"

namespace cairn::cli {
namespace {

struct MeasureArguments {
  Console console;
  GraphSource source;
  BackendChoice backend;
  std::string output;
};

/// Seconds of v's op alone.
double measure_op(Backend& backend, core::Precision precision, const core::Graph& graph, core::NodeId v) {
  std::int64_t copies = runtime::sample_copies(graph, v, backend.cache_bytes());
  return backend.time_step(runtime::sample_graph(graph, v, copies), precision) / static_cast<double>(copies);
}

int measure(const MeasureArguments& arguments) {
  require_outputs({{"-o", arguments.output}}, {arguments.source.input()});
  const auto backend = open_backend(arguments.backend.backend);
  const PreparedGraph loaded = prepare_graph(arguments.source, *backend, arguments.backend);
  const core::Graph& graph = loaded.prepared;
  catch_interrupt();
  const bool shows_progress = !arguments.console.quiet && isatty(STDERR_FILENO) != 0;
  const auto result = runtime::measure_costs(graph, [&](core::NodeId v) {
    if (catch_interrupt())
      throw Failure(kInterrupted, "interrupted while measuring; nothing was written, as half the costs are estimates");
    if (shows_progress) fmt::print(stderr, "\r\x1b[Kmeasuring node {} of {}", v + 1, graph.node_count());
    return measure_op(*backend, loaded.precision, graph, v);
  });
  if (shows_progress) fmt::print(stderr, "\r\x1b[K");
  if (!arguments.output.empty()) core::write_file(arguments.output, core::graph_to_json(result.graph));

  const auto before = core::evaluate(graph, core::baseline_schedule(graph));
  const auto after = core::evaluate(result.graph, core::baseline_schedule(result.graph));
  Json json;
  json["graph"] = graph.name().empty() ? arguments.source.name : graph.name();
  json["backend"] = backend->name();
  json["device"] = backend->device();
  if (const std::string note = backend->note(); !note.empty()) json["note"] = note;
  json["precision"] = core::to_string(loaded.precision);
  json["nodes"] = graph.node_count();
  json["measured_nodes"] = result.measured_nodes;
  json["distinct_ops"] = result.distinct_ops;
  json["baseline_cost_before"] = before.cost;
  json["baseline_cost_ns"] = after.cost;
  json["baseline_peak_bytes"] = after.peak;
  if (!arguments.output.empty()) json["output"] = arguments.output;
  arguments.console.print(
      json,
      format_table({{"graph", json["graph"].get<std::string>()},
                    {"device", backend->device()},
                    {"precision", json["precision"].get<std::string>()},
                    {"measured", fmt::format("{} nodes, {} distinct ops", result.measured_nodes, result.distinct_ops)},
                    {"cost of a step",
                     fmt::format("{:.3f} ms (estimated before: {:.3f} ms)", static_cast<double>(after.cost) / 1e6,
                                 static_cast<double>(before.cost) / 1e6)},
                    {"baseline peak", bytes_text(after.peak)},
                    {"written to", arguments.output.empty() ? "nowhere (give -o g.json)" : arguments.output}},
                   false));
  return kDone;
}

}  // namespace

Subcommand add_measure(CLI::App& root) {
  CLI::App* app = root.add_subcommand("measure", "time every op on this machine and write the costs into the graph");
  auto arguments = std::make_shared<MeasureArguments>();
  arguments->console.add_to(*app);
  arguments->backend.add_to(*app);
  app->add_option("-o,--output", arguments->output, "graph file to write: costs in ns, and the scratch of the kernels");
  arguments->source.add_to(*app);
  app->footer(
      "Every op is executed alone, warmed up, on memory that is not in a cache; its cost is the median.\n"
      "Nodes without an op keep their costs.\n"
      "Examples:\n"
      "  cairn measure resnet50 --batch 8 --image 64 -o resnet50.json\n"
      "  cairn measure gpt2 --precision bf16 --backend cuda -o gpt2.json && cairn run gpt2.json --budget 50%");
  return {app, [arguments] { return measure(*arguments); }};
}

}  // namespace cairn::cli
