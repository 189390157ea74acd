// Reports the costs that `cairn measure` has found.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/core/threads.h"
#include "cairn/pipeline/backend.h"
#include "cairn/pipeline/run.h"
#include "cairn/report/support/json.h"
#include "cairn/report/support/words.h"

namespace cairn::report {
namespace {

std::string timings_text(const pipeline::Measurement& measurement) {
  std::string text = fmt::format("{}, {} of them disturbed and repeated", measurement.timings, measurement.repeated);
  if (!measurement.disturbed.empty())
    text +=
        fmt::format("; every timing of {} ops was disturbed; lost time was subtracted", measurement.disturbed.size());
  return text;
}

core::Evaluation of_baseline(const core::Graph& graph) { return core::evaluate(graph, core::baseline_schedule(graph)); }

}  // namespace

std::string unmeasured_text(const runtime::MeasuredGraph& result) {
  if (result.unmeasured.empty()) return "";
  return fmt::format(
      "{} of {} distinct ops measured; the costs of {} nodes are estimates{}", result.measured_ops, result.distinct_ops,
      result.unmeasured.size(),
      result.scale != 1 ? fmt::format(", scaled by {:.4g} to the measured ones", result.scale) : " as before");
}

Json measurement_json(const std::string& name, const pipeline::PreparedGraph& given, const pipeline::Backend& backend,
                      const pipeline::Measurement& measurement) {
  const core::Graph& graph = given.prepared;
  const runtime::MeasuredGraph& result = measurement.result;
  const core::Evaluation before = of_baseline(graph), after = of_baseline(result.graph);
  const auto names = [&](const std::vector<core::NodeId>& nodes) {
    Json list = Json::array();
    for (const core::NodeId v : nodes) list.push_back(graph.name(v));
    return list;
  };
  Json json;
  json["graph"] = name;
  json["backend"] = backend.name();
  json["device"] = backend.device();
  if (const std::string note = backend.note(); !note.empty()) json["note"] = note;
  json["threads"] = core::thread_count();
  json["precision"] = core::to_string(given.precision);
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
  json["cost_unit"] = core::to_string(result.graph.cost_unit());
  json["cost_source"] = result.graph.cost_unit().source;
  json["baseline_cost_before"] = before.cost;
  json["baseline_cost_before_source"] = graph.cost_unit().source;
  const bool in_ns = result.graph.cost_unit().name == core::kNanoseconds;
  json["baseline_cost_ns"] = in_ns ? Json(after.cost) : Json(nullptr);
  json["baseline_peak_bytes"] = after.peak;
  return json;
}

std::string measurement_table(const std::string& name, const pipeline::PreparedGraph& given,
                              const pipeline::Backend& backend, const pipeline::Measurement& measurement,
                              const std::string& written_to) {
  const core::Graph& graph = given.prepared;
  const runtime::MeasuredGraph& result = measurement.result;
  const core::Evaluation before = of_baseline(graph), after = of_baseline(result.graph);
  Rows rows = {{"graph", name},
               {"device", backend.device()},
               {"precision", std::string(core::to_string(given.precision))},
               {"measured", fmt::format("{} nodes, {} distinct ops, in {:.1f} s", result.measured_nodes,
                                        result.distinct_ops, measurement.seconds)}};
  if (const std::int64_t without = pipeline::synthetic_nodes(graph); without > 0)
    rows.push_back(
        {"without an op", fmt::format("{} of {} nodes, whose costs are not measured", without, graph.node_count())});
  if (const std::string unmeasured = unmeasured_text(result); !unmeasured.empty())
    rows.push_back({"not measured", "the time was over: " + unmeasured});
  rows.push_back({"timings", timings_text(measurement)});
  rows.push_back({"cost of a step", core::cost_text(after.cost, result.graph.cost_unit())});
  rows.push_back({"before", fmt::format("{} ({})", core::cost_text(before.cost, graph.cost_unit()),
                                        graph.cost_unit().source.empty() ? "as given" : graph.cost_unit().source)});
  rows.push_back({"baseline peak", bytes_text(after.peak)});
  rows.push_back({"written to", written_to});
  return format_table(rows);
}

}  // namespace cairn::report
