#include "cairn/solvers/fit/problem.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cairn/core/formats/files.h"
#include "cairn/core/support/saturating.h"
#include "cairn/core/support/text.h"

namespace cairn::fit {
namespace {

/// Computes Problem::plan_slack: by how many bytes the peak of a schedule can exceed the size of its memory plan. While
/// an in-place node runs, the peak counts its output and the input that the output overwrites; a plan gives both the
/// same bytes. Only one node runs at a time, so the result is the largest difference of a single node, not the sum over
/// all nodes.
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
      plan_slack(slack_of_plans(graph)),
      alignment_(alignment) {
  if (alignment > 1) {
    rounded_ = std::make_shared<const Problem>(rounded_up(alignment));
    hundred_percent = rounded_->baseline.peak;
  }
  if (!budget_text.empty()) budget = core::parse_budget(budget_text, hundred_percent);
}

Problem Problem::rounded_up(std::int64_t alignment) const {
  const bool known = rounded_ && alignment == alignment_;
  Problem rounded = known ? *rounded_ : Problem(core::align_sizes(graph, alignment), {}, name);
  rounded.budget = budget;
  if (rounded.lower_bound != lower_bound || rounded.baseline.peak != baseline.peak) rounded.rounded_to = alignment;
  return rounded;
}

bool Problem::same_sizes(const Problem& other) const {
  const core::GraphView a = graph.view(), b = other.graph.view();
  return std::equal(a.size, a.size + graph.value_count(), b.size) &&
         std::equal(a.scratch, a.scratch + graph.node_count(), b.scratch);
}

std::int64_t Problem::peak_within(std::int64_t bytes) const { return core::saturating_add(bytes, plan_slack); }

}  // namespace cairn::fit
