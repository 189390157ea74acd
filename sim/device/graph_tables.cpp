#include "cairn/sim/device/graph_tables.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "cairn/sim/device/drawing/random_order.h"

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

/// Builds the tables of a graph. The tables and the graph number values differently: the first output of node v is
/// value v of the tables, and all further outputs follow.
template <class Id>
class TablesBuilder {
 public:
  TablesBuilder(const core::Graph& graph, TableArrays<Id, HostArray>& arrays, TablesView<Id>& scalars)
      : graph_(graph), view_(graph.view()), n_(graph.node_count()), to_(arrays), scalars_(scalars) {
    values_.assign(view_.value_begin, view_.value_begin + n_);
    for (core::ValueId x = 0; x < graph.value_count(); ++x) {
      if (graph.output_ref(x).output > 0) values_.push_back(x);
    }
    scalars_.node_count = n_;
    scalars_.value_count = graph.value_count();
    scalars_.edge_count = view_.predecessor_begin[n_];
    to_.predecessor_begin.assign(view_.predecessor_begin, view_.predecessor_begin + n_ + 1);
    to_.predecessors.assign(view_.predecessors, view_.predecessors + scalars_.edge_count);
    to_.pinned.assign(view_.pinned, view_.pinned + n_);
    to_.cost.assign(view_.cost, view_.cost + n_);
    to_.scratch.assign(view_.scratch, view_.scratch + n_);
  }

  void build() {
    add_values();
    const std::vector<std::int32_t> level = node_levels(graph_);
    add_nodes(level);
    if (!graph_.single_output()) add_further_outputs();
    add_value_records();
    scalars_.unit = find_unit(graph_);
    if (scalars_.unit > 0) add_units();
    add_levels(level);
  }

 private:
  void add_values() {
    to_.reader_begin.push_back(0);
    for (const core::ValueId x : values_) {
      to_.size.push_back(graph_.value_size(x));
      to_.keep.push_back(graph_.value_kept(x) ? 1 : 0);
      to_.at_end.push_back(graph_.value_kept(x) ? 0 : kMark | static_cast<std::uint64_t>(graph_.value_size(x)));
      to_.readers.insert(to_.readers.end(), graph_.readers(x).begin(), graph_.readers(x).end());
      to_.reader_begin.push_back(static_cast<std::int32_t>(to_.readers.size()));
      if (graph_.value_kept(x)) scalars_.kept_bytes += graph_.value_size(x);
    }
  }

  void add_nodes(const std::vector<std::int32_t>& level) {
    for (core::NodeId v = 0; v < n_; ++v) {
      NodeRecord node{kMark | static_cast<std::uint64_t>(to_.size[v]), graph_.size(v) + graph_.scratch(v),
                      graph_.cost(v), NodeRecord::range(view_.input_begin[v], view_.input_begin[v + 1])};
      if (graph_.required(v) && !graph_.keep(v)) {
        // The outputs of v are neither read nor kept, but every schedule must run v. So the first output counts as in
        // memory at the end, with 0 bytes. A schedule without v never produces this output, and is found to be
        // invalid.
        node.held = kMark;
        to_.at_end[v] = 0;
      }
      to_.nodes.push_back(node);
      scalars_.pinned_count += graph_.pinned(v) ? 1 : 0;
      scalars_.cost_once += graph_.cost(v);
      scalars_.has_scratch = scalars_.has_scratch || graph_.scratch(v) != 0;
      scalars_.negative_scratch = scalars_.negative_scratch || graph_.scratch(v) < 0;
      to_.edge_reader.insert(to_.edge_reader.end(), graph_.predecessors(v).size(), static_cast<Id>(v));
      scalars_.level_count = std::max(scalars_.level_count, level[v] + 1);
    }
    to_.bits_at_end.resize((values_.size() + 31) / 32);
    for (std::size_t x = 0; x < values_.size(); ++x) {
      to_.bits_at_end[x / 32] |= std::uint32_t{to_.at_end[x] == 0} << x % 32;
    }
  }

  void add_further_outputs() {
    std::vector<std::int32_t> number(
        static_cast<std::size_t>(graph_.value_count()));  // from the graph's to the tables'
    for (std::size_t i = 0; i < values_.size(); ++i) number[values_[i]] = static_cast<std::int32_t>(i);
    to_.outputs.assign(view_.node_size, view_.node_size + n_);
    for (core::NodeId v = 0; v <= n_; ++v) to_.further_begin.push_back(n_ + view_.value_begin[v] - v);
    for (const core::ValueId x : values_) to_.producer.push_back(static_cast<Id>(graph_.producer(x)));
    std::transform(view_.inputs, view_.inputs + graph_.edge_count(), std::back_inserter(to_.inputs),
                   [&](core::ValueId x) { return number[x]; });
  }

  void add_value_records() {
    for (std::size_t x = 0; x < values_.size(); ++x) {
      const auto begin = static_cast<std::int32_t>(to_.reader_fours.size());
      append_fours(to_.reader_fours, graph_.readers(values_[x]), [](core::NodeId v) { return static_cast<Id>(v); });
      const auto v = static_cast<core::NodeId>(x);
      to_.values.push_back({begin, static_cast<std::int32_t>(to_.reader_fours.size()),
                            v < n_ ? graph_.size(v) + graph_.scratch(v) : 0, to_.keep[x] != 0 ? 0 : to_.size[x]});
    }
  }

  void add_units() {
    const auto in_units = [&](const std::vector<std::int64_t>& bytes) {
      std::vector<std::int32_t> units(bytes.size());
      std::transform(bytes.begin(), bytes.end(), units.begin(),
                     [&](std::int64_t b) { return static_cast<std::int32_t>(b / scalars_.unit); });
      return units;
    };
    for (const ValueRecord<std::int64_t>& value : to_.values) {
      to_.unit_values.push_back({value.begin, value.end, static_cast<std::int32_t>(value.taken / scalars_.unit),
                                 static_cast<std::int32_t>(value.freed / scalars_.unit)});
    }
    to_.unit_size = in_units(to_.size);
    to_.unit_outputs = in_units(to_.outputs);
    to_.unit_scratch = in_units(to_.scratch);
  }

  void add_levels(const std::vector<std::int32_t>& level) {
    const std::vector<core::NodeId> by_level = nodes_by_level(level);
    to_.by_level.assign(by_level.begin(), by_level.end());
    to_.level_begin.assign(static_cast<std::size_t>(scalars_.level_count) + 1, 0);
    for (const std::int32_t l : level) ++to_.level_begin[l + 1];
    std::partial_sum(to_.level_begin.begin(), to_.level_begin.end(), to_.level_begin.begin());
    to_.draw_begin.push_back(0);
    for (const Id v : to_.by_level) {
      append_fours(to_.draw_inputs, graph_.predecessors(v), [](core::NodeId u) { return static_cast<Id>(u); });
      to_.draw_begin.push_back(static_cast<std::int32_t>(to_.draw_inputs.size()));
    }
    scalars_.wait_shift = waiting_time_shift(scalars_.level_count);
  }

  const core::Graph& graph_;
  const core::GraphView& view_;
  const core::NodeId n_;
  TableArrays<Id, HostArray>& to_;
  TablesView<Id>& scalars_;
  std::vector<core::ValueId> values_;  ///< from numbers of values in the tables to numbers in the graph
};

template <class Id>
Tables<Id>::Tables(const core::Graph& graph) {
  TablesBuilder<Id>(graph, arrays_, scalars_).build();
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
