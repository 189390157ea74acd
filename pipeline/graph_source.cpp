#include "cairn/pipeline/graph_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/support/text.h"
#include "cairn/solvers/fit/solve.h"

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
    throw core::InputError(fmt::format("the operations of a model are of fp32; use {} for {}",
                                       core::option("granularity", "layer"), core::option("precision", "bf16")));
  const core::Graph graph = core::with_precision(loaded, precision);
  const bool estimated = is_model() && precision != core::Precision::fp32 && !unit_cost;
  return estimated ? core::with_roofline_costs(graph, core::roofline_of(precision)) : graph;
}

void require_ops(const core::Graph& graph, core::Precision asked) {
  if (!fit::has_ops(graph))
    throw core::InputError(fmt::format("{} changes nothing, because no node of the graph has an op; drop it",
                                       core::option("precision", core::to_string(asked))));
}

}  // namespace cairn::pipeline
