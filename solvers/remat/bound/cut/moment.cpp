#include "cairn/solvers/remat/bound/cut/moment.h"

#include <algorithm>
#include <span>

namespace cairn::solvers {
namespace {

/// Finds which nodes run at or after the moment in every schedule, and which have run before it in every schedule.
void find_sides(const core::Graph& graph, OrderRule rule, Moment& moment) {
  const std::span<const core::NodeId> order = graph.input_order();
  std::vector<std::uint8_t>&after = moment.after, &before = moment.before;
  if (rule != OrderRule::free) {
    const auto at = std::ranges::find(order, moment.node);
    for (auto v = order.begin(); v != order.end(); ++v) (v < at ? before : after)[*v] = 1;
    return;
  }
  after[moment.node] = before[moment.node] = 1;
  for (const core::NodeId v : order) {
    for (const core::NodeId u : graph.predecessors(v)) after[v] |= after[u];
  }
  for (auto v = order.rbegin(); v != order.rend(); ++v) {
    for (const core::NodeId u : graph.predecessors(*v)) before[u] |= before[*v];
  }
  before[moment.node] = 0;
}

}  // namespace

Moment::Moment(const core::Graph& graph, core::NodeId p, std::int64_t budget, OrderRule order)
    : node(p),
      after(graph.node_count(), 0),
      before(graph.node_count(), 0),
      needed(graph.value_count(), 0),
      free(graph.value_count(), 0),
      room(budget - graph.size(p) - graph.scratch(p)) {
  find_sides(graph, order, *this);
  for (const core::ValueId x : graph.inputs(p)) {
    free[x] = 1;
    room -= graph.value_size(x);
  }
  const auto reads_late = [&](core::NodeId reader) { return reader != p && is_after(reader); };
  for (core::ValueId x = 0; x < graph.value_count(); ++x) {
    if (graph.value_size(x) == 0) free[x] = 1;
    if (!is_after(graph.producer(x)))
      needed[x] = graph.value_kept(x) || std::ranges::any_of(graph.readers(x), reads_late);
  }
}

}  // namespace cairn::solvers
