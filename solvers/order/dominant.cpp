#include "cairn/solvers/order/internal/dominant.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cairn/solvers/order/internal/min_cut.h"

namespace cairn::solvers {
namespace {

/// The steps of a cut from its end to its beginning, as a step graph: edges point the other way, a step raises memory
/// by what it dropped and then drops what it raised. What a step holds comes back before the first of its successors:
/// a step of its own, in front of all of them (the node-sum form's release node, reversed and negated).
struct Reversed {
  StepGraph graph;
  std::vector<StepId> original;  ///< of each step but the last ones, which bring back what was held
};

Reversed reverse(const StepGraph& graph, const Cut& cut) {
  Reversed reversed;
  std::vector<StepId> local(static_cast<std::size_t>(graph.step_count()), -1);
  std::vector<StepGraph::Step> steps;
  std::vector<StepGraph::Edge> edges;
  for (StepId s = 0; s < graph.step_count(); ++s) {
    if (!cut.contains(s)) continue;
    local[s] = static_cast<StepId>(steps.size());
    steps.push_back({graph[s].drop, graph[s].rise, 0});
    reversed.original.push_back(s);
    for (const StepId p : graph.predecessors(s)) edges.emplace_back(s, p);
  }
  for (auto& [from, to] : edges) {
    from = local[from];
    to = local[to];
  }
  for (const StepId s : reversed.original) {
    const auto successors = graph.successors(s);
    const bool released =
        graph[s].held > 0 && std::all_of(successors.begin(), successors.end(), [&](StepId t) { return local[t] >= 0; });
    if (!released) continue;
    const auto back = static_cast<StepId>(steps.size());
    steps.push_back({graph[s].held, 0, 0});
    for (const StepId t : successors) edges.emplace_back(back, local[t]);
  }
  reversed.graph = StepGraph(std::move(steps), std::move(edges));
  return reversed;
}

}  // namespace

std::optional<std::vector<StepId>> find_schedule(const StepGraph& graph, const Cut& from, const Cut& to,
                                                 const PeakOracle& oracle) {
  std::vector<StepId> result;
  Cut done = from;
  while (!(done == to)) {
    const auto order = oracle(graph, done, to);
    if (!order) return std::nullopt;
    const auto bytes = profile(graph, *order, done);
    const auto highest = std::max_element(bytes.begin(), bytes.end()) - bytes.begin();
    // No cut has less memory than the first: where none has more either, all orders are as good.
    if (highest == 0) {
      result.insert(result.end(), order->begin(), order->end());
      break;
    }
    // The leftmost peak is while a step runs; that step's end is no higher, so it belongs to the minimum cut behind it.
    const auto steps_to_peak = (highest + 1) / 2;
    Cut peak = done;
    for (std::ptrdiff_t i = 0; i < steps_to_peak; ++i) peak.insert((*order)[i]);
    const Cut valley = min_memory_cut(graph, peak, to);
    for (const StepId s : *order) {
      if (valley.contains(s)) result.push_back(s);
    }
    done = valley;
  }
  return result;
}

std::optional<std::vector<StepId>> find_schedule_general(const StepGraph& graph, const PeakOracle& oracle) {
  const StepId n = graph.step_count();
  const Cut valley = min_memory_cut(graph);
  const Reversed left = reverse(graph, valley);
  const StepId left_count = left.graph.step_count();
  const auto backwards = find_schedule(left.graph, Cut(left_count), Cut(left_count, true), oracle);
  if (!backwards) return std::nullopt;
  auto right = find_schedule(graph, valley, Cut(n, true), oracle);
  if (!right) return std::nullopt;

  std::vector<StepId> order;
  order.reserve(static_cast<std::size_t>(n));
  for (std::size_t i = backwards->size(); i-- > 0;) {
    const auto s = static_cast<std::size_t>((*backwards)[i]);
    if (s < left.original.size()) order.push_back(left.original[s]);
  }
  order.insert(order.end(), right->begin(), right->end());
  return order;
}

}  // namespace cairn::solvers
