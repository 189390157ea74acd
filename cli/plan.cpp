#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cairn/cli/arguments.h"
#include "cairn/cli/output.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/text.h"
#include "cairn/pipeline/solve.h"

namespace cairn::cli {
namespace {

struct PlanArguments {
  Console console;
  GraphArguments source;
  std::string schedule, buffers, capacity, output, csv;
  std::int64_t alignment = 1;

  solvers::PlanOptions options() const {
    solvers::PlanOptions options;
    options.alignment = alignment;
    return options;
  }
};

Json describe_plan(const core::Plan& plan) {
  Json json;
  json["buffers"] = plan.buffers.size();
  json["planned_bytes"] = plan.bytes;
  json["lower_bound_bytes"] = plan.lower_bound;
  json["fragmentation_pct"] = increase_pct(plan.bytes, plan.lower_bound);
  json["alignment"] = plan.alignment;
  return json;
}

Rows rows_of(const core::Plan& plan) {
  return {{"buffers", std::to_string(plan.buffers.size())},
          {"planned", bytes_text(plan.bytes)},
          {"lower bound", fmt::format("{}, {:.2f}% below", bytes_text(plan.lower_bound),
                                      0.0 - increase_pct(plan.lower_bound, plan.bytes))}};
}

int plan_schedule(const PlanArguments& arguments) {
  const core::Graph graph = arguments.source.source().load();
  const auto file = core::load_schedule(arguments.schedule, graph);
  const core::Plan plan = pipeline::checked_plan(graph, file.schedule, arguments.options()).plan;
  if (!arguments.output.empty()) core::write_file(arguments.output, core::plan_to_json(graph, plan));
  if (!arguments.csv.empty()) core::write_file(arguments.csv, core::plan_to_minimalloc_csv(graph, plan));

  const auto evaluation = core::evaluate(graph, file.schedule);
  Json json = describe_plan(plan);
  json["graph"] = graph.name();
  json["fingerprint"] = graph.fingerprint();
  json["steps"] = file.schedule.length();
  json["peak_bytes"] = evaluation.peak;
  json["cost"] = evaluation.cost;
  auto rows = rows_of(plan);
  rows.push_back({"peak of the schedule", bytes_text(evaluation.peak)});
  arguments.console.print(json, format_table(rows));
  return kDone;
}

std::int64_t parse_capacity(const std::string& text) {
  if (text.find('%') != std::string::npos)
    throw core::InputError(fmt::format("--capacity '{}' must be in bytes, as 1048576 or 1MiB, not a percentage", text));
  return core::parse_budget(text, 0);
}

int plan_csv(const PlanArguments& arguments) {
  std::optional<std::int64_t> capacity;
  if (!arguments.capacity.empty()) capacity = parse_capacity(arguments.capacity);
  const auto specs = core::load_minimalloc_csv(arguments.buffers, {.stop = &catch_interrupt()});
  solvers::PlanOptions options = arguments.options();
  options.limit.stop = &catch_interrupt();
  const core::Plan plan = pipeline::checked_plan(specs, {}, options).plan;
  Json json = describe_plan(plan);
  json["capacity_bytes"] = or_null(capacity);
  json["fits"] = !capacity || plan.bytes <= *capacity;
  if (capacity && plan.lower_bound > *capacity)
    throw Failure(kInfeasible,
                  fmt::format("no plan of '{}' fits into {} bytes: {} bytes are live at once; {} bytes are known to do",
                              arguments.buffers, *capacity, plan.lower_bound, plan.bytes),
                  std::move(json));
  const std::string& output = arguments.output.empty() ? arguments.csv : arguments.output;
  if (catch_interrupt()) {
    if (!output.empty()) core::write_file(output, core::minimalloc_csv(specs, plan));
    throw Failure(kInterrupted,
                  fmt::format("interrupted; the best plan so far needs {} bytes{}", plan.bytes,
                              output.empty() ? std::string() : fmt::format(" and is in {}", output)),
                  std::move(json));
  }
  if (capacity && plan.bytes > *capacity)
    throw Failure(kNotFound,
                  fmt::format("found no plan of '{}' within {} bytes, and none is excluded (lower bound {} bytes); {} "
                              "bytes are known to do",
                              arguments.buffers, *capacity, plan.lower_bound, plan.bytes),
                  std::move(json));
  if (!output.empty()) core::write_file(output, core::minimalloc_csv(specs, plan));
  arguments.console.print(json, format_table(rows_of(plan)));
  return kDone;
}

int plan(const PlanArguments& arguments) {
  require_outputs({{"-o", arguments.output}, {"--csv", arguments.csv}},
                  {arguments.source.input(), {"SCHEDULE", arguments.schedule}, {"--buffers", arguments.buffers}});
  if (!arguments.buffers.empty()) {
    if (!arguments.source.name.empty()) throw core::InputError("give either GRAPH and SCHEDULE or --buffers, not both");
    return plan_csv(arguments);
  }
  if (arguments.source.name.empty() || arguments.schedule.empty())
    throw core::InputError("plan needs GRAPH and SCHEDULE, or --buffers F.csv");
  if (!arguments.capacity.empty()) throw core::InputError("--capacity goes with --buffers; drop it, or give --buffers");
  return plan_schedule(arguments);
}

}  // namespace

Subcommand add_plan(CLI::App& root) {
  CLI::App* app = root.add_subcommand("plan", "place the tensors of a schedule, or the buffers of a CSV, in one arena");
  auto arguments = std::make_shared<PlanArguments>();
  arguments->console.add_to(*app);
  add_alignment(*app, arguments->alignment);
  app->add_option("-o,--output", arguments->output, "plan to write: JSON for a schedule, CSV for --buffers");
  app->add_option("--csv", arguments->csv, "MiniMalloc CSV with offsets to write");
  app->add_option("--buffers", arguments->buffers, "MiniMalloc CSV with columns id, lower, upper, size");
  app->add_option("--capacity", arguments->capacity, "bytes that the buffers must fit into, as 1048576 or 1MiB");
  arguments->source.add_to(*app);
  app->get_option("GRAPH")->required(false);
  app->add_option("SCHEDULE", arguments->schedule, "schedule file, as 'cairn solve -o' writes it");
  app->footer(
      "Examples:\n"
      "  cairn plan graph.json s.json --alignment 256 -o plan.json --csv plan.csv\n"
      "  cairn plan --buffers A.1048576.csv --capacity 1048576 -o out.csv");
  return {app, [arguments] { return plan(*arguments); }};
}

}  // namespace cairn::cli
