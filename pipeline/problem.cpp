#include "cairn/pipeline/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "cairn/core/formats/files.h"
#include "cairn/core/text.h"

namespace cairn::pipeline {
namespace {

std::vector<std::string_view> model_names() {
  std::vector<std::string_view> names;
  for (const auto& model : models::registry()) names.push_back(model.name);
  return names;
}

}  // namespace

bool GraphSource::is_model() const {
  const auto names = model_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool GraphSource::is_file() const {
  return !is_model() &&
         (name == "-" || std::filesystem::exists(name) || name.find_first_of("./\\") != std::string::npos);
}

core::Graph GraphSource::build() const { return as_asked(models::build_model(name, options)); }

core::Graph GraphSource::load(const core::Limit& limit) const {
  if (is_model()) return build();
  if (!is_file())
    throw core::InputError(fmt::format("'{}' is neither a file nor a model{}; 'cairn models' lists the models", name,
                                       core::did_you_mean(name, model_names())));
  core::ReadOptions how = reading;
  how.limit = limit;
  how.limit.seconds = std::min(limit.seconds, reading.limit.seconds);
  if (how.limit.stop == nullptr) how.limit.stop = reading.limit.stop;
  return as_asked(core::load_graph(name, how));
}

core::Graph GraphSource::as_asked(core::Graph graph) const {
  if (forward) graph = core::forward_part(graph);
  if (unit_cost)
    graph = graph.with_costs(std::vector<std::int64_t>(static_cast<std::size_t>(graph.node_count()), 1),
                             core::CostUnit{"steps", "--unit-cost"});
  return graph;
}

core::Graph GraphSource::stored_as(const core::Graph& loaded, core::Precision precision) const {
  if (is_model() && options.granularity == models::Granularity::op && precision == core::Precision::bf16)
    throw core::InputError("the operations of a model are of fp32; use --granularity layer for --precision bf16");
  const core::Graph graph = core::with_precision(loaded, precision);
  const bool estimated = is_model() && precision != core::Precision::fp32 && !unit_cost;
  return estimated ? core::with_roofline_costs(graph, core::roofline_of(precision)) : graph;
}

namespace {

/// At most one node runs at a time, and what it takes over is counted twice in its peak unless its scratch says so.
std::int64_t slack_of_plans(const core::Graph& graph) {
  std::int64_t most = 0;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    std::int64_t saved = std::min<std::int64_t>(0, graph.scratch(v));
    for (const core::ValueId x : graph.outputs(v)) {
      if (const core::ValueId u = graph.inplace(x); u != core::kNoValue)
        saved += std::min(graph.value_size(x), graph.value_size(u));
    }
    most = std::max(most, saved);
  }
  return most;
}

}  // namespace

std::string graph_name(const core::Graph& graph, std::string_view file) {
  return graph.name().empty() ? core::input_name(std::string(file)) : graph.name();
}

Problem::Problem(core::Graph graph_in, std::string_view budget_text, std::string_view fallback_name,
                 std::int64_t alignment)
    : graph(std::move(graph_in)),
      name(graph_name(graph, fallback_name)),
      baseline(core::evaluate(graph, core::baseline_schedule(graph))),
      lower_bound(core::peak_lower_bound(graph)),
      hundred_percent(baseline.peak),
      plan_slack(slack_of_plans(graph)) {
  if (alignment > 1) hundred_percent = rounded_up(alignment).baseline.peak;
  if (!budget_text.empty()) budget = core::parse_budget(budget_text, hundred_percent);
}

Problem Problem::rounded_up(std::int64_t alignment) const {
  Problem rounded(core::align_sizes(graph, alignment), {}, name);
  rounded.budget = budget;
  if (rounded.lower_bound != lower_bound || rounded.baseline.peak != baseline.peak) rounded.rounded_to = alignment;
  return rounded;
}

bool Problem::same_sizes(const Problem& other) const {
  const core::GraphView a = graph.view(), b = other.graph.view();
  return std::equal(a.size, a.size + graph.value_count(), b.size) &&
         std::equal(a.scratch, a.scratch + graph.node_count(), b.scratch);
}

}  // namespace cairn::pipeline
