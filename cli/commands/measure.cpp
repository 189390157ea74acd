#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "cairn/cli/arguments.h"
#include "cairn/cli/output.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/support/text.h"
#include "cairn/core/threads.h"
#include "cairn/pipeline/backend.h"
#include "cairn/pipeline/run.h"

namespace cairn::cli {
namespace {

struct MeasureArguments {
  Console console;
  GraphArguments graph;
  BackendChoice backend;
  std::string output, time_limit;
};

std::string remaining_text(const pipeline::MeasureProgress& progress) {
  return progress.remaining ? fmt::format("  about {:.0f} s left", *progress.remaining) : "";
}

pipeline::Measurement time_ops(pipeline::Backend& backend, const pipeline::PreparedGraph& graph,
                               const MeasureArguments& arguments) {
  core::Limit limit{.stop = &catch_interrupt()};
  if (!arguments.time_limit.empty()) limit.seconds = core::parse_seconds(arguments.time_limit) - seconds_since_start();
  const core::Stopwatch watch(limit);
  pipeline::MeasureOptions options;
  options.expired = [&] { return watch.passed(); };
  ProgressLine line(arguments.console);
  if (line.active()) {
    options.progress = [&](const pipeline::MeasureProgress& progress) {
      const double end = progress.seconds + progress.remaining.value_or(0);
      line.show(fmt::format("{}{:.1f} s  op {} of {}: {}{}",
                            ProgressLine::bar(progress.remaining ? progress.seconds / std::max(end, 1e-9) : 0),
                            progress.seconds, progress.measured + 1, progress.ops,
                            core::to_string(graph.prepared.op(progress.node)->kind), remaining_text(progress)));
    };
  }
  return pipeline::measure(backend, graph, options);
}

/// Says what was not measured, and which costs are used instead. The text is empty if everything was measured.
std::string unmeasured_text(const runtime::MeasuredGraph& result) {
  if (result.unmeasured.empty()) return "";
  return fmt::format(
      "{} of {} distinct ops measured; the costs of {} nodes are estimates{}", result.measured_ops, result.distinct_ops,
      result.unmeasured.size(),
      result.scale != 1 ? fmt::format(", scaled by {:.4g} to the measured ones", result.scale) : " as before");
}

std::string timings_text(const pipeline::Measurement& measurement) {
  std::string text = fmt::format("{}, {} of them disturbed and repeated", measurement.timings, measurement.repeated);
  if (!measurement.disturbed.empty())
    text +=
        fmt::format("; every timing of {} ops was disturbed; lost time was subtracted", measurement.disturbed.size());
  return text;
}

int measure(const MeasureArguments& arguments) {
  require_outputs({{"-o", arguments.output}}, {arguments.graph.input()});
  const auto backend = pipeline::open_backend(arguments.backend.name());
  const auto given = pipeline::prepare(*backend, arguments.graph.source(), arguments.backend.given());
  const core::Graph& graph = given.prepared;
  const pipeline::Measurement measurement = time_ops(*backend, given, arguments);
  const runtime::MeasuredGraph& result = measurement.result;
  const bool none = result.distinct_ops > 0 && result.measured_ops == 0;
  const bool writes = !arguments.output.empty() && !none;
  if (writes) write_output(arguments.output, [&] { return core::graph_to_json(result.graph); });

  const auto before = core::evaluate(graph, core::baseline_schedule(graph));
  const auto after = core::evaluate(result.graph, core::baseline_schedule(result.graph));
  const std::string name = fit::graph_name(graph, arguments.graph.name);
  const std::string precision(core::to_string(given.precision));
  const std::string unmeasured = unmeasured_text(result);
  const auto names = [&](const std::vector<core::NodeId>& nodes) {
    Json list = Json::array();
    for (const core::NodeId v : nodes) list.push_back(graph.name(v));
    return list;
  };
  Json json;
  json["graph"] = name;
  json["backend"] = backend->name();
  json["device"] = backend->device();
  if (const std::string note = backend->note(); !note.empty()) json["note"] = note;
  json["threads"] = core::thread_count();
  json["precision"] = precision;
  json["nodes"] = graph.node_count();
  json["measured_nodes"] = result.measured_nodes;
  json["nodes_without_op"] = pipeline::synthetic_nodes(graph);
  json["distinct_ops"] = result.distinct_ops;
  json["measured_ops"] = result.measured_ops;
  json["unmeasured_nodes"] = names(result.unmeasured);
  json["estimate_scale"] = result.unmeasured.empty() ? Json(nullptr) : Json(result.scale);
  json["timings"] = measurement.timings;
  json["repeated_timings"] = measurement.repeated;
  json["disturbed_ops"] = names(measurement.disturbed);
  json["measure_seconds"] = measurement.seconds;
  json["interrupted"] = catch_interrupt().load();
  json["cost_unit"] = core::to_string(result.graph.cost_unit());
  json["cost_source"] = result.graph.cost_unit().source;
  json["baseline_cost_before"] = before.cost;
  json["baseline_cost_before_source"] = graph.cost_unit().source;
  const bool in_ns = result.graph.cost_unit().name == core::kNanoseconds;
  json["baseline_cost_ns"] = in_ns ? Json(after.cost) : Json(nullptr);
  json["baseline_peak_bytes"] = after.peak;
  if (writes) json["output"] = arguments.output;

  const std::string where = none     ? "nothing was written"
                            : writes ? fmt::format("written to '{}'", arguments.output)
                                     : "give -o g.json to have it written";
  if (catch_interrupt())
    throw Failure(kInterrupted,
                  fmt::format("interrupted; {}; {}", unmeasured.empty() ? "all was measured" : unmeasured, where),
                  std::move(json));
  if (none)
    throw Failure(kNotFound,
                  "the time was over before any op was measured, and nothing was written; raise --time-limit",
                  std::move(json));
  Rows rows = {{"graph", name},
               {"device", backend->device()},
               {"precision", precision},
               {"measured", fmt::format("{} nodes, {} distinct ops, in {:.1f} s", result.measured_nodes,
                                        result.distinct_ops, measurement.seconds)}};
  const std::int64_t without = pipeline::synthetic_nodes(graph);
  if (without > 0)
    rows.push_back(
        {"without an op", fmt::format("{} of {} nodes, whose costs are not measured", without, graph.node_count())});
  if (!unmeasured.empty()) rows.push_back({"not measured", "the time was over: " + unmeasured});
  rows.push_back({"timings", timings_text(measurement)});
  rows.push_back({"cost of a step", core::cost_text(after.cost, result.graph.cost_unit())});
  rows.push_back({"before", fmt::format("{} ({})", core::cost_text(before.cost, graph.cost_unit()),
                                        graph.cost_unit().source.empty() ? "as given" : graph.cost_unit().source)});
  rows.push_back({"baseline peak", bytes_text(after.peak)});
  rows.push_back({"written to", written_to(arguments.output)});
  arguments.console.print(json, format_table(rows));
  return kDone;
}

}  // namespace

Subcommand add_measure(CLI::App& root) {
  CLI::App* app = root.add_subcommand("measure", "time every op on this machine and write the costs into the graph");
  auto arguments = std::make_shared<MeasureArguments>();
  arguments->console.add_to(*app);
  arguments->backend.add_to(*app);
  add_time_limit(*app, arguments->time_limit,
                 "wall time of the command, as 30s or 2m: the most expensive ops come first, and the costs of the rest "
                 "are scaled to theirs");
  add_threads(*app, "of the kernels");
  app->add_option("-o,--output", arguments->output, "graph file to write: costs in ns, and the scratch of the kernels");
  arguments->graph.add_to(*app);
  app->footer(
      "Every op is executed alone, warmed up, on memory that is not in a cache; its cost is the median of several\n"
      "timings. Those that other work of the machine disturbed are repeated. "
      "Nodes without an op keep their costs, in ns.\n"
      "Ctrl-C writes what is known, and says what was not measured.\n"
      "Examples:\n"
      "  cairn measure resnet50 --batch 8 --image 64 -o resnet50.json\n"
      "  cairn measure gpt2 --precision bf16 --backend cuda -o gpt2.json && cairn run gpt2.json --budget 50%");
  return {app, [arguments] { return measure(*arguments); }};
}

}  // namespace cairn::cli
