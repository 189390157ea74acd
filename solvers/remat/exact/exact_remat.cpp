// Finds the cheapest schedule of a small graph by an exact search over the contents of memory (exact_remat.h).

#include "cairn/solvers/remat/exact/exact_remat.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/support/text.h"
#include "cairn/solvers/common/support/costs.h"
#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/remat/exact/live_set_search.h"

namespace cairn::solvers {
namespace {

using core::NodeId;
using core::ValueId;

/// Represents the whole graph as a problem of LiveSetSearch. The problem begins with empty memory, and ends with the
/// kept values in memory.
struct WholeGraph {
  LiveSetProblem<Set64> problem;
  std::vector<NodeId> nodes;  ///< node of the graph for each node number of the problem

  explicit WholeGraph(const core::Graph& graph) : nodes(graph.input_order().begin(), graph.input_order().end()) {
    std::vector<ValueId> values(static_cast<std::size_t>(graph.value_count()));
    std::iota(values.begin(), values.end(), 0);
    std::ranges::stable_sort(values, std::greater<>(), [&](ValueId x) { return graph.value_size(x); });
    std::vector<std::int32_t> number(values.size()), place(nodes.size());
    for (std::size_t i = 0; i < values.size(); ++i) number[values[i]] = static_cast<std::int32_t>(i);
    for (std::size_t i = 0; i < nodes.size(); ++i) place[nodes[i]] = static_cast<std::int32_t>(i);
    for (const ValueId x : values) {
      problem.sizes.push_back(graph.value_size(x));
      problem.producers.push_back(place[graph.producer(x)]);
      if (graph.value_kept(x)) problem.target |= single<Set64>(number[x]);
    }
    for (const NodeId v : nodes) {
      LiveSetProblem<Set64>::Node node{.during = graph.size(v) + graph.scratch(v), .cost = graph.cost(v)};
      for (const ValueId x : graph.inputs(v)) node.inputs |= single<Set64>(number[x]);
      for (const ValueId x : graph.outputs(v)) node.outputs |= single<Set64>(number[x]);
      if (graph.pinned(v)) problem.once |= single<Set64>(place[v]);
      if (graph.required(v) && !graph.keep(v)) problem.goals |= single<Set64>(place[v]);
      problem.nodes.push_back(node);
    }
  }

  core::Schedule schedule(const std::vector<std::int32_t>& steps) const {
    core::Schedule schedule;
    for (const std::int32_t i : steps) schedule.steps.push_back(nodes[i]);
    return schedule;
  }
};

using SmallSearch = LiveSetSearch<Set64>;

/// Finds the least peak of all schedules by bisection between the proved lower bound and the lowest known peak. Every
/// peak is a sum of sizes and scratch, so only multiples of their greatest common divisor are tried. If the watch ends
/// the bisection early, the lower bound stays where it has been proved.
void find_least_peak(const core::Graph& graph, const WholeGraph& whole, std::int64_t memory_bytes, SmallSearch& search,
                     Incumbent& incumbent, core::Stopwatch& watch) {
  const std::int64_t unit = size_unit(graph);
  while (incumbent.lower_bound() < incumbent.least_peak()) {
    const std::int64_t low = incumbent.lower_bound() / unit, high = incumbent.least_peak() / unit;
    const std::int64_t middle = (low + (high - 1 - low) / 2) * unit;
    const SmallSearch::Result result =
        search.run(whole.problem, {.budget = middle, .free_of_cost = true, .memory_bytes = memory_bytes}, watch);
    if (!result.proved) return;
    if (result.found) {
      incumbent.offer(whole.schedule(result.steps));
    } else {
      incumbent.raise_lower_bound(middle + unit);
    }
  }
}

}  // namespace

Solution exact_remat(const core::Graph& graph, const SolveOptions& options) {
  if (graph.value_count() > kMostExactRematValues) {
    throw core::InputError(
        fmt::format("the graph has {} values, but the exact search with recomputation takes at most {}; "
                    "{} takes any graph",
                    graph.value_count(), kMostExactRematValues, core::option("solver", "auto")));
  }
  core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch);
  incumbent.offer(core::baseline_schedule(graph));
  if (incumbent.cannot_improve()) return incumbent.finish(false);
  const WholeGraph whole(graph);
  SmallSearch search;
  std::int64_t budget = options.budget.value_or(0);
  const auto attempt = [&](const LiveSetLimits& limits, core::Stopwatch& part) {
    const SmallSearch::Result result = search.run(whole.problem, limits, part);
    if (result.found) incumbent.offer(whole.schedule(result.steps));
    if (options.budget && result.proved && !result.found) incumbent.raise_lower_bound(budget + 1);
    return result;
  };
  if (!options.budget) {
    find_least_peak(graph, whole, options.memory_bytes, search, incumbent, watch);
    budget = incumbent.least_peak();
  } else if (!incumbent.within_budget() && !incumbent.proved_infeasible()) {
    // Look for any schedule within the budget first. The search for the cheapest one can take longer than the limit and
    // would then return no schedule.
    core::within(watch, 0.5, [&](core::Stopwatch& first) {
      attempt({.budget = budget, .free_of_cost = true, .memory_bytes = options.memory_bytes}, first);
    });
  }
  if (!incumbent.proved_infeasible() && !watch.expired_now()) {
    LiveSetLimits limits{.budget = budget, .memory_bytes = options.memory_bytes};
    if (incumbent.fits(incumbent.peak())) limits.most_cost = incumbent.cost();
    const SmallSearch::Result result = attempt(limits, watch);
    // If the user gave no budget, `budget` is the least peak. The bound on the cost does not hold for schedules of
    // higher peaks, so it is not reported.
    if (options.budget && (result.found || !result.proved))
      incumbent.raise_cost_bound({result.cost_bound, kAnySchedule});
  }
  if (incumbent.proved_infeasible()) find_least_peak(graph, whole, options.memory_bytes, search, incumbent, watch);
  return incumbent.finish(!incumbent.cannot_improve() && watch.expired_now());
}

}  // namespace cairn::solvers
