#include "cairn/sim/device/graph_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "cairn/core/error.h"
#include "cairn/sim/device/random_order.h"

namespace cairn::sim::device {
namespace {

/// What all sizes and scratches are multiples of, if sums of them in that unit fit into 31 bits; else 0.
std::int64_t find_unit(const core::Graph& graph) {
  std::int64_t unit = 0, sum = 0, most_scratch = 0;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    unit = std::gcd(std::gcd(unit, graph.size(v)), graph.scratch(v));
    sum += graph.size(v);
    most_scratch = std::max(most_scratch, std::abs(graph.scratch(v)));
  }
  if (unit == 0) unit = 1;
  return sum / unit + most_scratch / unit < std::numeric_limits<std::int32_t>::max() ? unit : 0;
}

}  // namespace

std::vector<std::int32_t> node_levels(const core::Graph& graph) {
  std::vector<std::int32_t> level(static_cast<std::size_t>(graph.node_count()), 0);
  for (const core::NodeId v : graph.input_order()) {
    for (const core::NodeId u : graph.predecessors(v)) level[v] = std::max(level[v], level[u] + 1);
  }
  return level;
}

template <class Id>
Tables<Id>::Tables(const core::Graph& graph) {
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.output_count(v) == 1 && !graph.pinned(v)) continue;
    throw core::InputError(fmt::format("node '{}' {}, which the simulator cannot evaluate yet", graph.name(v),
                                       graph.pinned(v) ? "is pinned" : "has several outputs"));
  }
  const core::NodeId n = graph.node_count();
  const core::GraphView& view = graph.view();
  const auto narrow = [](const core::NodeId* begin, std::int64_t count) {
    std::vector<Id> ids(static_cast<std::size_t>(count));
    std::transform(begin, begin + count, ids.begin(), [](core::NodeId v) { return static_cast<Id>(v); });
    return ids;
  };
  scalars_.node_count = n;
  scalars_.edge_count = static_cast<std::int32_t>(graph.edge_count());
  input_begin_.assign(view.input_begin, view.input_begin + n + 1);
  inputs_ = narrow(view.inputs, graph.edge_count());
  reader_begin_.assign(view.reader_begin, view.reader_begin + n + 1);
  readers_ = narrow(view.readers, graph.edge_count());
  keep_.assign(view.keep, view.keep + n);
  size_.assign(view.node_size, view.node_size + n);
  scratch_.assign(view.scratch, view.scratch + n);
  cost_.assign(view.cost, view.cost + n);

  scalars_.unit = find_unit(graph);
  for (core::NodeId v = 0; v < n && scalars_.unit > 0; ++v) {
    unit_size_.push_back(static_cast<std::int32_t>(graph.size(v) / scalars_.unit));
    unit_scratch_.push_back(static_cast<std::int32_t>(graph.scratch(v) / scalars_.unit));
  }

  const std::vector<std::int32_t> level = node_levels(graph);
  for (core::NodeId v = 0; v < n; ++v) {
    // What nobody reads and nobody keeps is never held, but must stand in a schedule all the same.
    const bool sink = graph.successors(v).empty() && !graph.keep(v);
    const std::uint64_t held = kMark | (sink ? 0 : static_cast<std::uint64_t>(graph.size(v)));
    nodes_.push_back({held, graph.size(v) + graph.scratch(v), graph.cost(v), input_begin_[v], input_begin_[v + 1]});
    at_end_.push_back(graph.required(v) ? 0 : held);
    if (graph.keep(v)) scalars_.kept_bytes += graph.size(v);
    scalars_.cost_once += graph.cost(v);
    edge_reader_.insert(edge_reader_.end(), graph.predecessors(v).size(), static_cast<Id>(v));
    scalars_.level_count = std::max(scalars_.level_count, level[v] + 1);
  }
  by_level_.resize(static_cast<std::size_t>(n));
  std::iota(by_level_.begin(), by_level_.end(), Id{0});
  std::stable_sort(by_level_.begin(), by_level_.end(), [&](Id a, Id b) { return level[a] < level[b]; });
  level_begin_.assign(static_cast<std::size_t>(scalars_.level_count) + 1, 0);
  for (const std::int32_t l : level) ++level_begin_[l + 1];
  std::partial_sum(level_begin_.begin(), level_begin_.end(), level_begin_.begin());
  scalars_.wait_shift = waiting_time_shift(scalars_.level_count);
}

template <class Id>
TablesView<Id> Tables<Id>::view() const {
  TablesView<Id> view = scalars_;
  view.nodes = nodes_.data();
  view.at_end = at_end_.data();
  view.input_begin = input_begin_.data();
  view.inputs = inputs_.data();
  view.reader_begin = reader_begin_.data();
  view.readers = readers_.data();
  view.edge_reader = edge_reader_.data();
  view.by_level = by_level_.data();
  view.level_begin = level_begin_.data();
  view.keep = keep_.data();
  view.unit_size = unit_size_.data();
  view.unit_scratch = unit_scratch_.data();
  view.size = size_.data();
  view.scratch = scratch_.data();
  view.cost = cost_.data();
  return view;
}

template class Tables<std::uint16_t>;
template class Tables<std::uint32_t>;

}  // namespace cairn::sim::device
