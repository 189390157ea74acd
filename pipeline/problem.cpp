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
  return !is_model() && (std::filesystem::exists(name) || name.find_first_of("./\\") != std::string::npos);
}

core::Graph GraphSource::build() const {
  const core::Graph model = models::build_model(name, options);
  return forward ? core::forward_part(model) : model;
}

core::Graph GraphSource::load(const core::Limit& limit) const {
  if (is_model()) return build();
  if (!is_file())
    throw core::InputError(fmt::format("'{}' is neither a file nor a model{}; 'cairn models' lists the models", name,
                                       core::did_you_mean(name, model_names())));
  const core::Graph graph = core::load_graph(name, limit);
  return forward ? core::forward_part(graph) : graph;
}

core::Graph GraphSource::stored_as(const core::Graph& loaded, core::Precision precision) const {
  const core::Graph graph = core::with_precision(loaded, precision);
  const bool estimated = is_model() && precision != core::Precision::fp32;
  return estimated ? core::with_roofline_costs(graph, core::roofline_of(precision)) : graph;
}

Problem::Problem(core::Graph graph_in, std::string_view budget_text, std::string_view fallback_name)
    : graph(std::move(graph_in)),
      name(graph.name().empty() ? fallback_name : graph.name()),
      baseline(core::evaluate(graph, core::baseline_schedule(graph))),
      lower_bound(core::peak_lower_bound(graph)) {
  if (!budget_text.empty()) budget = core::parse_budget(budget_text, baseline.peak);
}

Problem Problem::rounded_up(std::int64_t alignment) const {
  Problem rounded(core::align_sizes(graph, alignment), {}, name);
  rounded.budget = budget;
  if (rounded.lower_bound != lower_bound || rounded.baseline.peak != baseline.peak) rounded.rounded_to = alignment;
  return rounded;
}

}  // namespace cairn::pipeline
