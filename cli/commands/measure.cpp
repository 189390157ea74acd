#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "cairn/cli/arguments.h"
#include "cairn/cli/output.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/support/text.h"
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

int measure(const MeasureArguments& arguments) {
  require_outputs({{"-o", arguments.output}}, {arguments.graph.input()});
  const auto backend = pipeline::open_backend(arguments.backend.name());
  const auto given = pipeline::prepare(*backend, arguments.graph.source(), arguments.backend.given());
  const pipeline::Measurement measurement = time_ops(*backend, given, arguments);
  const runtime::MeasuredGraph& result = measurement.result;
  const bool none = result.distinct_ops > 0 && result.measured_ops == 0;
  const bool writes = !arguments.output.empty() && !none;
  if (writes) write_output(arguments.output, [&] { return core::graph_to_json(result.graph); });

  const std::string name = fit::graph_name(given.prepared, arguments.graph.name);
  const std::string unmeasured = report::unmeasured_text(result);
  Json json = report::measurement_json(name, given, *backend, measurement);
  json["interrupted"] = catch_interrupt().load();
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
  arguments.console.print(json, arguments.console.json ? ""
                                                       : report::measurement_table(name, given, *backend, measurement,
                                                                                   written_to(arguments.output)));
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
