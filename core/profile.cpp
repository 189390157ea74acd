#include "cairn/core/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "cairn/core/error.h"
#include "cairn/core/internal/trace.h"

namespace cairn::core {
namespace {

constexpr std::int64_t kMostSteps = std::numeric_limits<std::int32_t>::max() - 1;

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

}  // namespace

Defect trace_last_reads(const GraphView& graph, std::span<const NodeId> steps, std::vector<std::int32_t>& latest,
                        std::vector<std::int32_t>& last_read) {
  if (static_cast<std::int64_t>(steps.size()) > kMostSteps)
    throw InputError("the schedule has more than 2^31 - 2 steps");
  const auto length = static_cast<std::int32_t>(steps.size());
  latest.assign(graph.node_count, -1);
  last_read.resize(steps.size());
  for (std::int32_t i = 0; i < length; ++i) {
    const NodeId v = steps[i];
    if (v < 0 || v >= graph.node_count) return {Defect::Kind::unknown_node, i, v, kNoNode};
    for (std::int32_t e = graph.input_begin[v]; e < graph.input_begin[v + 1]; ++e) {
      const NodeId u = graph.inputs[e];
      if (latest[u] < 0) return {Defect::Kind::missing_input, i, v, u};
      last_read[latest[u]] = i;
    }
    latest[v] = i;
    last_read[i] = i;
  }
  for (NodeId v = 0; v < graph.node_count; ++v) {
    if (latest[v] < 0) {
      if (graph.keep[v] || graph.reader_begin[v] == graph.reader_begin[v + 1]) {
        return {Defect::Kind::missing_node, -1, v, kNoNode};
      }
    } else if (graph.keep[v]) {
      last_read[latest[v]] = length;
    }
  }
  return {};
}

std::string describe(const Graph& graph, const Defect& defect) {
  switch (defect.kind) {
    case Defect::Kind::none:
      return "valid";
    case Defect::Kind::unknown_node:
      return fmt::format("step {}: there is no node {}", defect.step, defect.node);
    case Defect::Kind::missing_input:
      return fmt::format("step {}: node '{}' reads node '{}' before it was computed", defect.step,
                         graph.name(defect.node), graph.name(defect.input));
    case Defect::Kind::missing_node:
      return fmt::format("node '{}' is never computed", graph.name(defect.node));
  }
  return {};
}

Evaluator::Evaluator(const Graph& graph) : graph_(graph.view()) {}

Defect Evaluator::trace(std::span<const NodeId> steps) {
  const Defect defect = trace_last_reads(graph_, steps, latest_, last_read_);
  if (defect.kind != Defect::Kind::none) return defect;
  freed_.assign(steps.size() + 1, 0);
  for (std::size_t i = 0; i < steps.size(); ++i) freed_[last_read_[i]] += graph_.size[steps[i]];
  return {};
}

Evaluation Evaluator::evaluate(std::span<const NodeId> steps) {
  Evaluation result;
  result.defect = trace(steps);
  if (!result.valid()) return result;

  std::int64_t live = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const NodeId v = steps[i];
    live += graph_.size[v];
    const std::int64_t during = live + graph_.scratch[v];
    if (during > result.peak || result.peak_step < 0) {
      result.peak = during;
      result.peak_step = static_cast<std::int64_t>(i);
    }
    live -= freed_[i];
    result.cost = saturating_add(result.cost, graph_.cost[v]);
  }
  // Every node that occurs has a latest step; the others of the steps are recomputations.
  const auto distinct = std::count_if(latest_.begin(), latest_.end(), [](std::int32_t step) { return step >= 0; });
  result.recomputed = static_cast<std::int64_t>(steps.size()) - distinct;
  return result;
}

std::vector<std::int64_t> Evaluator::profile(std::span<const NodeId> steps) {
  if (trace(steps).kind != Defect::Kind::none) throw InputError("the schedule is not valid; evaluate() says why");
  std::vector<std::int64_t> profile{0};
  profile.reserve(2 * steps.size() + 1);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::int64_t held = profile.back() + graph_.size[steps[i]];
    profile.push_back(held + graph_.scratch[steps[i]]);
    profile.push_back(held - freed_[i]);
  }
  return profile;
}

Evaluation evaluate(const Graph& graph, const Schedule& schedule) { return Evaluator(graph).evaluate(schedule); }

std::int64_t peak_lower_bound(const Graph& graph) {
  std::int64_t kept = 0, working_set = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.keep(v)) kept += graph.size(v);
    std::int64_t bytes = graph.size(v) + graph.scratch(v);
    for (const NodeId u : graph.inputs(v)) bytes += graph.size(u);
    working_set = std::max(working_set, bytes);
  }
  return std::max(kept, working_set);
}

}  // namespace cairn::core
