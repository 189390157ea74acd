#include "cairn/sim/device/graph_tables.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "cairn/sim/device/random_order.h"

namespace cairn::sim::device {
namespace {

/// Returns the greatest common divisor, in bytes, of all sizes and scratch, if sums of them in this unit fit into 31
/// bits. Otherwise returns 0.
std::int64_t find_unit(const core::Graph& graph) {
  std::int64_t unit = 0, sum = 0, most_scratch = 0;
  for (core::ValueId x = 0; x < graph.value_count(); ++x) {
    unit = std::gcd(unit, graph.value_size(x));
    sum += graph.value_size(x);
  }
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    unit = std::gcd(unit, graph.scratch(v));
    most_scratch = std::max(most_scratch, std::abs(graph.scratch(v)));
  }
  if (unit == 0) unit = 1;
  return sum / unit + most_scratch / unit < std::numeric_limits<std::int32_t>::max() ? unit : 0;
}

/// Appends a list of ids to `fours`, four ids per element (FourIds). id_of(entry) returns the id of an entry of the
/// list.
template <class Id, class List, class IdOf>
void append_fours(std::vector<FourIds<Id>>& fours, const List& list, const IdOf& id_of) {
  std::size_t count = 0;
  for (const auto& entry : list) {
    const Id id = id_of(entry);
    if (count++ % 4 == 0) fours.push_back({{id, id, id, id}});
    for (std::size_t k = (count - 1) % 4; k < 4; ++k) fours.back().id[k] = id;
  }
}

}  // namespace

std::vector<std::int32_t> node_levels(const core::Graph& graph) {
  std::vector<std::int32_t> level(static_cast<std::size_t>(graph.node_count()), 0);
  for (const core::NodeId v : graph.input_order()) {
    for (const core::NodeId u : graph.predecessors(v)) level[v] = std::max(level[v], level[u] + 1);
  }
  return level;
}

std::vector<core::NodeId> nodes_by_level(const std::vector<std::int32_t>& levels) {
  std::vector<core::NodeId> nodes(levels.size());
  std::iota(nodes.begin(), nodes.end(), core::NodeId{0});
  std::stable_sort(nodes.begin(), nodes.end(), [&](core::NodeId a, core::NodeId b) { return levels[a] < levels[b]; });
  return nodes;
}

template <class Id>
Tables<Id>::Tables(const core::Graph& graph) {
  const core::NodeId n = graph.node_count();
  const core::GraphView& view = graph.view();
  TableArrays<Id, Vector>& to = arrays_;
  // The tables and the graph number values differently. `values` maps numbers in the tables to numbers in the graph,
  // and `number` maps in the other direction.
  std::vector<core::ValueId> values(view.value_begin, view.value_begin + n);
  std::vector<std::int32_t> number(static_cast<std::size_t>(graph.value_count()));
  for (core::ValueId x = 0; x < graph.value_count(); ++x) {
    if (graph.output_ref(x).output > 0) values.push_back(x);
  }
  for (std::size_t i = 0; i < values.size(); ++i) number[values[i]] = static_cast<std::int32_t>(i);

  scalars_.node_count = n;
  scalars_.value_count = graph.value_count();
  scalars_.edge_count = view.predecessor_begin[n];
  to.predecessor_begin.assign(view.predecessor_begin, view.predecessor_begin + n + 1);
  to.predecessors.assign(view.predecessors, view.predecessors + scalars_.edge_count);
  to.pinned.assign(view.pinned, view.pinned + n);
  to.cost.assign(view.cost, view.cost + n);
  to.scratch.assign(view.scratch, view.scratch + n);
  to.reader_begin.push_back(0);
  for (const core::ValueId x : values) {
    to.size.push_back(graph.value_size(x));
    to.keep.push_back(graph.value_kept(x) ? 1 : 0);
    to.at_end.push_back(graph.value_kept(x) ? 0 : kMark | static_cast<std::uint64_t>(graph.value_size(x)));
    to.readers.insert(to.readers.end(), graph.readers(x).begin(), graph.readers(x).end());
    to.reader_begin.push_back(static_cast<std::int32_t>(to.readers.size()));
    if (graph.value_kept(x)) scalars_.kept_bytes += graph.value_size(x);
  }

  const std::vector<std::int32_t> level = node_levels(graph);
  for (core::NodeId v = 0; v < n; ++v) {
    NodeRecord node{kMark | static_cast<std::uint64_t>(to.size[v]), graph.size(v) + graph.scratch(v), graph.cost(v),
                    NodeRecord::range(view.input_begin[v], view.input_begin[v + 1])};
    if (graph.required(v) && !graph.keep(v)) {
      // The outputs of v are neither read nor kept, but every schedule must run v. So the first output counts as in
      // memory at the end, with 0 bytes. A schedule without v never produces this output, and is found to be invalid.
      node.held = kMark;
      to.at_end[v] = 0;
    }
    to.nodes.push_back(node);
    scalars_.pinned_count += graph.pinned(v) ? 1 : 0;
    scalars_.cost_once += graph.cost(v);
    scalars_.has_scratch = scalars_.has_scratch || graph.scratch(v) != 0;
    scalars_.negative_scratch = scalars_.negative_scratch || graph.scratch(v) < 0;
    to.edge_reader.insert(to.edge_reader.end(), graph.predecessors(v).size(), static_cast<Id>(v));
    scalars_.level_count = std::max(scalars_.level_count, level[v] + 1);
  }
  to.bits_at_end.resize((values.size() + 31) / 32);
  for (std::size_t x = 0; x < values.size(); ++x) to.bits_at_end[x / 32] |= std::uint32_t{to.at_end[x] == 0} << x % 32;
  if (!graph.single_output()) {
    to.outputs.assign(view.node_size, view.node_size + n);
    for (core::NodeId v = 0; v <= n; ++v) to.further_begin.push_back(n + view.value_begin[v] - v);
    for (const core::ValueId x : values) to.producer.push_back(static_cast<Id>(graph.producer(x)));
    std::transform(view.inputs, view.inputs + graph.edge_count(), std::back_inserter(to.inputs),
                   [&](core::ValueId x) { return number[x]; });
  }

  for (std::size_t x = 0; x < values.size(); ++x) {
    const auto begin = static_cast<std::int32_t>(to.reader_fours.size());
    append_fours(to.reader_fours, graph.readers(values[x]), [](core::NodeId v) { return static_cast<Id>(v); });
    const auto v = static_cast<core::NodeId>(x);
    to.values.push_back({begin, static_cast<std::int32_t>(to.reader_fours.size()),
                         v < n ? graph.size(v) + graph.scratch(v) : 0, to.keep[x] != 0 ? 0 : to.size[x]});
  }

  scalars_.unit = find_unit(graph);
  if (scalars_.unit > 0) {
    const auto in_units = [&](const std::vector<std::int64_t>& bytes) {
      std::vector<std::int32_t> units(bytes.size());
      std::transform(bytes.begin(), bytes.end(), units.begin(),
                     [&](std::int64_t b) { return static_cast<std::int32_t>(b / scalars_.unit); });
      return units;
    };
    for (const ValueRecord<std::int64_t>& value : to.values) {
      to.unit_values.push_back({value.begin, value.end, static_cast<std::int32_t>(value.taken / scalars_.unit),
                                static_cast<std::int32_t>(value.freed / scalars_.unit)});
    }
    to.unit_size = in_units(to.size);
    to.unit_outputs = in_units(to.outputs);
    to.unit_scratch = in_units(to.scratch);
  }

  const std::vector<core::NodeId> by_level = nodes_by_level(level);
  to.by_level.assign(by_level.begin(), by_level.end());
  to.level_begin.assign(static_cast<std::size_t>(scalars_.level_count) + 1, 0);
  for (const std::int32_t l : level) ++to.level_begin[l + 1];
  std::partial_sum(to.level_begin.begin(), to.level_begin.end(), to.level_begin.begin());
  to.draw_begin.push_back(0);
  for (const Id v : to.by_level) {
    append_fours(to.draw_inputs, graph.predecessors(v), [](core::NodeId u) { return static_cast<Id>(u); });
    to.draw_begin.push_back(static_cast<std::int32_t>(to.draw_inputs.size()));
  }
  scalars_.wait_shift = waiting_time_shift(scalars_.level_count);
}

template <class Id>
TablesView<Id> Tables<Id>::view() const {
  TablesView<Id> view = scalars_;
  for_all_tables(arrays_, arrays_, view, [](const auto& from, const auto&, auto& pointer) { pointer = from.data(); });
  return view;
}

template class Tables<std::uint16_t>;
template class Tables<std::uint32_t>;

}  // namespace cairn::sim::device
