// Finds cuts of least memory (min_cut.h). A cut is a set of steps that contains all predecessors of its steps. The
// memory of a cut is the bytes in use when exactly its steps have run. A step first raises memory by its `rise`.

#include "cairn/solvers/order/internal/min_cut.h"

#include <algorithm>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/property_map/property_map.hpp>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace cairn::solvers {
namespace {

/// A flow network, in which each arc is paired with an opposite arc. It can be used for one network after another, so
/// that its arrays are allocated once.
class FlowNetwork {
 public:
  void reset(std::int32_t node_count) {
    node_count_ = node_count;
    arcs_.clear();
  }
  void add_arc(std::int32_t from, std::int32_t to, std::int64_t capacity) {
    arcs_.push_back({from, to, capacity});
    arcs_.push_back({to, from, 0});
  }

  /// Computes a maximum flow. Returns the largest source side of a minimum cut: entry v is 1 if no path of the residual
  /// network leads from node v to `sink`.
  std::vector<std::uint8_t> largest_source_side(std::int32_t source, std::int32_t sink) {
    sort_arcs();
    const CsrGraph graph(boost::edges_are_sorted, pairs_.begin(), pairs_.end(), static_cast<std::size_t>(node_count_));
    opposite_.resize(arcs_.size());
    for (std::size_t a = 0; a < arcs_.size(); ++a) {
      opposite_[place_[a]] = Edge(static_cast<std::size_t>(arcs_[a].to), place_[a ^ 1]);
    }
    const auto edge_index = boost::get(boost::edge_index, graph);
    const auto node_index = boost::get(boost::vertex_index, graph);
    const auto nodes = static_cast<std::size_t>(node_count_);
    residual_.assign(arcs_.size(), 0);
    parent_.assign(nodes, Edge());
    color_.assign(nodes, boost::gray_color);
    distance_.assign(nodes, 0);
    boost::boykov_kolmogorov_max_flow(graph, boost::make_iterator_property_map(capacity_.begin(), edge_index),
                                      boost::make_iterator_property_map(residual_.begin(), edge_index),
                                      boost::make_iterator_property_map(opposite_.begin(), edge_index),
                                      boost::make_iterator_property_map(parent_.begin(), node_index),
                                      boost::make_iterator_property_map(color_.begin(), node_index),
                                      boost::make_iterator_property_map(distance_.begin(), node_index), node_index,
                                      static_cast<std::size_t>(source), static_cast<std::size_t>(sink));
    return cannot_reach(sink);
  }

 private:
  using CsrGraph = boost::compressed_sparse_row_graph<boost::directedS>;
  using Edge = boost::graph_traits<CsrGraph>::edge_descriptor;
  struct Arc {
    std::int32_t from, to;
    std::int64_t capacity;
  };

  void sort_arcs() {
    begin_.assign(static_cast<std::size_t>(node_count_) + 1, 0);
    for (const Arc& arc : arcs_) ++begin_[arc.from + 1];
    for (std::int32_t v = 0; v < node_count_; ++v) begin_[v + 1] += begin_[v];
    next_.assign(begin_.begin(), begin_.end() - 1);
    place_.resize(arcs_.size());
    pairs_.resize(arcs_.size());
    capacity_.resize(arcs_.size());
    for (std::size_t a = 0; a < arcs_.size(); ++a) {
      const std::size_t place = next_[arcs_[a].from]++;
      place_[a] = place;
      pairs_[place] = {static_cast<std::size_t>(arcs_[a].from), static_cast<std::size_t>(arcs_[a].to)};
      capacity_[place] = arcs_[a].capacity;
    }
  }

  std::vector<std::uint8_t> cannot_reach(std::int32_t sink) const {
    std::vector<std::uint8_t> cannot(static_cast<std::size_t>(node_count_), 1);
    std::vector<std::size_t> queue{static_cast<std::size_t>(sink)};
    cannot[sink] = 0;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      for (std::size_t a = begin_[queue[i]]; a < begin_[queue[i] + 1]; ++a) {
        const std::size_t before = pairs_[a].second;
        if (cannot[before] == 0 || residual_[opposite_[a].idx] == 0) continue;
        cannot[before] = 0;
        queue.push_back(before);
      }
    }
    return cannot;
  }

  std::int32_t node_count_ = 0;
  std::vector<Arc> arcs_;  ///< the opposite of arc a is arc a ^ 1
  std::vector<std::size_t> begin_, next_, place_;
  /// Arc::from and Arc::to of each arc, sorted. capacity_, residual_ and opposite_ have the same order.
  std::vector<std::pair<std::size_t, std::size_t>> pairs_;
  std::vector<std::int64_t> capacity_, residual_;
  std::vector<Edge> opposite_, parent_;
  std::vector<boost::default_color_type> color_;
  std::vector<std::int64_t> distance_;
};

std::vector<std::uint8_t> least_closure(FlowNetwork& network, std::span<const std::int64_t> weights,
                                        std::span<const Need> needs) {
  constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 2;
  const auto count = static_cast<std::int32_t>(weights.size());
  const std::int32_t source = count, sink = count + 1;
  network.reset(count + 2);
  for (std::int32_t v = 0; v < count; ++v) {
    if (weights[v] < 0) network.add_arc(source, v, -weights[v]);
    if (weights[v] > 0) network.add_arc(v, sink, weights[v]);
  }
  for (const auto& [holder, needed] : needs) network.add_arc(holder, needed, kUnlimited);
  auto closure = network.largest_source_side(source, sink);
  closure.resize(weights.size());
  return closure;
}

/// Finds cuts of least memory in one graph. Its arrays are allocated once for all calls.
class CutFinder {
 public:
  explicit CutFinder(const StepGraph& graph) : graph_(graph), local_(static_cast<std::size_t>(graph.step_count())) {}

  Cut least(const Cut& from, const Cut& to) {
    number(from, to);
    weights_.clear();
    needs_.clear();
    for (const StepId s : steps_) weights_.push_back(graph_[s].rise - graph_[s].drop);
    for (const StepId s : steps_) {
      for (const StepId p : graph_.predecessors(s)) {
        if (local_[p] >= 0) needs_.emplace_back(local_[s], local_[p]);
      }
    }
    for (StepId s = 0; s < graph_.step_count(); ++s) {
      if (to.contains(s) && graph_[s].output > 0) add_release(s, from, to);
    }
    const auto closure = least_closure(network_, weights_, needs_);
    Cut cut = from;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (closure[i] != 0) cut.insert(steps_[i]);
    }
    return cut;
  }

 private:
  void number(const Cut& from, const Cut& to) {
    steps_.clear();
    for (StepId s = 0; s < graph_.step_count(); ++s) {
      local_[s] = -1;
      if (!to.contains(s) || from.contains(s)) continue;
      local_[s] = static_cast<std::int32_t>(steps_.size());
      steps_.push_back(s);
    }
  }

  /// Models that the output of s is freed after all its readers. Adds an element with the negative size of the output
  /// as its weight, which needs all readers that have not run at `from`. If there is only one such reader, lowers the
  /// weight of this reader instead. Does nothing if all readers have run at `from`, because the output is already
  /// freed, or if a reader is outside `to`, because the output is not freed.
  void add_release(StepId s, const Cut& from, const Cut& to) {
    std::int32_t waiting = 0, last = -1;
    for (const StepId successor : graph_.successors(s)) {
      if (!to.contains(successor)) return;
      if (from.contains(successor)) continue;
      ++waiting;
      last = local_[successor];
    }
    if (waiting == 0) return;
    if (waiting == 1) {
      weights_[last] -= graph_[s].output;
      return;
    }
    const auto release = static_cast<std::int32_t>(weights_.size());
    weights_.push_back(-graph_[s].output);
    for (const StepId successor : graph_.successors(s)) {
      if (local_[successor] >= 0) needs_.emplace_back(release, local_[successor]);
    }
  }

  const StepGraph& graph_;
  FlowNetwork network_;
  std::vector<StepId> steps_;
  std::vector<std::int32_t> local_;
  std::vector<std::int64_t> weights_;
  std::vector<Need> needs_;
};

/// Computes cut_lower_bound(). The bound of a step is its rise plus the least memory of a cut after which it can run.
/// at_most_ has an upper bound on the bound of each step: its rise plus the memory of some such cut. The step with the
/// highest at_most_ is examined next. The search ends when the best bound so far is at least at_most_ of every step.
class BoundSearch {
 public:
  BoundSearch(const StepGraph& graph, const Cut& from, const Cut& to)
      : graph_(graph),
        from_(from),
        to_(to),
        finder_(graph),
        at_most_(static_cast<std::size_t>(graph.step_count()), std::numeric_limits<std::int64_t>::min()),
        looked_behind_(graph.step_count()) {
    for (const StepId s : graph.any_order()) {
      if (!to.contains(s) || from.contains(s)) continue;
      order_.push_back(s);
      at_most_[s] = std::numeric_limits<std::int64_t>::max();
    }
    lower_to(order_);
  }

  std::int64_t run(core::Stopwatch& watch) {
    std::int64_t bound = std::max(memory(graph_, from_), memory(graph_, to_));
    while (!order_.empty()) {
      const auto s = static_cast<StepId>(std::max_element(at_most_.begin(), at_most_.end()) - at_most_.begin());
      if (at_most_[s] <= bound || watch.charge(graph_.step_count() + graph_.edge_count()).expired()) break;
      if (!looked_behind_.contains(s)) {
        look_behind_ancestors(s);
      } else {
        bound = std::max(bound, find_least(s));
      }
    }
    return bound;
  }

 private:
  /// Lowers at_most_ of each step to the memory during the step in the given order, if that is less.
  void lower_to(std::span<const StepId> order) {
    const auto bytes = profile(graph_, order, from_);
    for (std::size_t i = 0; i < order.size(); ++i) at_most_[order[i]] = std::min(at_most_[order[i]], bytes[2 * i + 1]);
  }

  /// Lowers at_most_ of s by a cut that is found without a maximum flow and often has the least memory. The cut
  /// contains the ancestors of s, and repeatedly grows by a step that can run and leaves memory no higher.
  void look_behind_ancestors(StepId s) {
    looked_behind_.insert(s);
    Cut cut = from_;
    mark(s, cut, [&](StepId t) { return graph_.predecessors(t); });
    cut.erase(s);
    std::int64_t bytes = memory(graph_, cut);
    std::vector<std::int32_t> waiting(static_cast<std::size_t>(graph_.step_count()));
    std::vector<StepId> ready;
    const auto is_ready = [&](StepId t) {
      const auto before = graph_.predecessors(t);
      return t != s && to_.contains(t) && !cut.contains(t) &&
             std::all_of(before.begin(), before.end(), [&](StepId p) { return cut.contains(p); });
    };
    for (StepId t = 0; t < graph_.step_count(); ++t) {
      for (const StepId reader : graph_.successors(t)) waiting[t] += cut.contains(reader) ? 0 : 1;
      if (is_ready(t)) ready.push_back(t);
    }
    while (!ready.empty()) {
      const StepId t = ready.back();
      ready.pop_back();
      if (cut.contains(t)) continue;
      std::int64_t change = graph_[t].rise - graph_[t].drop;
      for (const StepId p : graph_.predecessors(t)) change -= waiting[p] == 1 ? graph_[p].output : 0;
      if (change > 0) continue;
      cut.insert(t);
      bytes += change;
      for (const StepId p : graph_.predecessors(t)) {
        if (--waiting[p] != 1 || graph_[p].output == 0) continue;
        for (const StepId reader : graph_.successors(p)) {
          if (is_ready(reader)) ready.push_back(reader);
        }
      }
      for (const StepId next : graph_.successors(t)) {
        if (is_ready(next)) ready.push_back(next);
      }
    }
    at_most_[s] = std::min(at_most_[s], bytes + graph_[s].rise);
  }

  std::int64_t find_least(StepId s) {
    Cut low = from_, behind(graph_.step_count()), high = to_;
    mark(s, low, [&](StepId t) { return graph_.predecessors(t); });
    low.erase(s);
    mark(s, behind, [&](StepId t) { return graph_.successors(t); });
    for (const StepId t : order_) {
      if (behind.contains(t)) high.erase(t);
    }
    const Cut cut = finder_.least(low, high);
    // If the steps of this cut run first, memory is low during many other steps, too, so their at_most_ falls as well.
    std::stable_partition(order_.begin(), order_.end(), [&](StepId t) { return cut.contains(t); });
    lower_to(order_);
    return at_most_[s] = memory(graph_, cut) + graph_[s].rise;
  }

  /// Adds s and all steps that can be reached from s along `next`, except beyond steps that were marked before.
  template <class Next>
  static void mark(StepId s, Cut& marked, const Next& next) {
    std::vector<StepId> stack{s};
    marked.insert(s);
    while (!stack.empty()) {
      const StepId top = stack.back();
      stack.pop_back();
      for (const StepId t : next(top)) {
        if (marked.contains(t)) continue;
        marked.insert(t);
        stack.push_back(t);
      }
    }
  }

  const StepGraph& graph_;
  const Cut& from_;
  const Cut& to_;
  CutFinder finder_;
  std::vector<StepId> order_;
  std::vector<std::int64_t> at_most_;
  Cut looked_behind_;
};

}  // namespace

std::vector<std::uint8_t> least_closure(std::span<const std::int64_t> weights, std::span<const Need> needs) {
  FlowNetwork network;
  return least_closure(network, weights, needs);
}

Cut min_memory_cut(const StepGraph& graph, const Cut& from, const Cut& to) { return CutFinder(graph).least(from, to); }

std::int64_t cut_lower_bound(const StepGraph& graph, const Cut& from, const Cut& to, core::Stopwatch& watch) {
  return BoundSearch(graph, from, to).run(watch);
}

std::int64_t cut_lower_bound(const StepGraph& graph, core::Stopwatch& watch) {
  return cut_lower_bound(graph, Cut(graph.step_count()), Cut(graph.step_count(), true), watch);
}

}  // namespace cairn::solvers
