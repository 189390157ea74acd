#include "cairn/solvers/common/support/flow_network.h"

#include <algorithm>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/property_map/property_map.hpp>
#include <cstddef>
#include <utility>

namespace cairn::solvers {
namespace {

using CsrGraph = boost::compressed_sparse_row_graph<boost::directedS>;
using Edge = boost::graph_traits<CsrGraph>::edge_descriptor;

}  // namespace

struct FlowNetwork::Sorted {
  bool current = false;  ///< whether the members from `graph` to `opposite` describe the current arcs
  CsrGraph graph;
  std::vector<std::size_t> begin, next, place;
  /// Arc::from and Arc::to of each arc, sorted by Arc::from. The arrays of capacities, residual capacities and opposite
  /// arcs have the same order.
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  std::vector<Edge> opposite, parent;
  std::vector<std::int64_t> capacity, residual;
  std::vector<boost::default_color_type> color;
  std::vector<std::int64_t> distance;
};

FlowNetwork::FlowNetwork() : sorted_(std::make_unique<Sorted>()) {}
FlowNetwork::~FlowNetwork() = default;

void FlowNetwork::reset(std::int32_t node_count) {
  node_count_ = node_count;
  arcs_.clear();
  sorted_->current = false;
}

std::int32_t FlowNetwork::add_arc(std::int32_t from, std::int32_t to, std::int64_t capacity) {
  const auto arc = static_cast<std::int32_t>(arcs_.size());
  arcs_.push_back({from, to, capacity});
  arcs_.push_back({to, from, 0});
  sorted_->current = false;
  return arc;
}

void FlowNetwork::sort_arcs() {
  Sorted& it = *sorted_;
  it.begin.assign(static_cast<std::size_t>(node_count_) + 1, 0);
  for (const Arc& arc : arcs_) ++it.begin[arc.from + 1];
  for (std::int32_t v = 0; v < node_count_; ++v) it.begin[v + 1] += it.begin[v];
  it.next.assign(it.begin.begin(), it.begin.end() - 1);
  it.place.resize(arcs_.size());
  it.pairs.resize(arcs_.size());
  for (std::size_t a = 0; a < arcs_.size(); ++a) {
    const std::size_t place = it.next[arcs_[a].from]++;
    it.place[a] = place;
    it.pairs[place] = {static_cast<std::size_t>(arcs_[a].from), static_cast<std::size_t>(arcs_[a].to)};
  }
  it.graph = CsrGraph(boost::edges_are_sorted, it.pairs.begin(), it.pairs.end(), static_cast<std::size_t>(node_count_));
  it.opposite.resize(arcs_.size());
  for (std::size_t a = 0; a < arcs_.size(); ++a) {
    it.opposite[it.place[a]] = Edge(static_cast<std::size_t>(arcs_[a].to), it.place[a ^ 1]);
  }
  it.capacity.resize(arcs_.size());
  it.current = true;
}

std::int64_t FlowNetwork::solve(std::int32_t source, std::int32_t sink) {
  Sorted& it = *sorted_;
  if (!it.current) sort_arcs();
  for (std::size_t a = 0; a < arcs_.size(); ++a) it.capacity[it.place[a]] = arcs_[a].capacity;
  const auto edge_index = boost::get(boost::edge_index, it.graph);
  const auto node_index = boost::get(boost::vertex_index, it.graph);
  const auto nodes = static_cast<std::size_t>(node_count_);
  it.residual.assign(arcs_.size(), 0);
  it.parent.assign(nodes, Edge());
  it.color.assign(nodes, boost::gray_color);
  it.distance.assign(nodes, 0);
  const std::int64_t flow =
      boost::boykov_kolmogorov_max_flow(it.graph, boost::make_iterator_property_map(it.capacity.begin(), edge_index),
                                        boost::make_iterator_property_map(it.residual.begin(), edge_index),
                                        boost::make_iterator_property_map(it.opposite.begin(), edge_index),
                                        boost::make_iterator_property_map(it.parent.begin(), node_index),
                                        boost::make_iterator_property_map(it.color.begin(), node_index),
                                        boost::make_iterator_property_map(it.distance.begin(), node_index), node_index,
                                        static_cast<std::size_t>(source), static_cast<std::size_t>(sink));
  find_source_side(sink);
  return flow;
}

void FlowNetwork::find_source_side(std::int32_t sink) {
  const Sorted& it = *sorted_;
  source_side_.assign(static_cast<std::size_t>(node_count_), 1);
  std::vector<std::size_t> queue{static_cast<std::size_t>(sink)};
  source_side_[sink] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (std::size_t a = it.begin[queue[i]]; a < it.begin[queue[i] + 1]; ++a) {
      const std::size_t before = it.pairs[a].second;
      if (source_side_[before] == 0 || it.residual[it.opposite[a].idx] == 0) continue;
      source_side_[before] = 0;
      queue.push_back(before);
    }
  }
}

}  // namespace cairn::solvers
