#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/node_sum.h"
#include "cairn/core/reference.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/order/internal/step_graph.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/reference_order.h"

/// Brute force for peak memory without recomputation, from the definitions of Jin et al. and by no algorithm of theirs.
/// It goes over all topological cuts, so it is for graphs with few of them. Memory in bytes.
namespace cairn::tests {

using Order = std::vector<std::int32_t>;
using Bytes = std::vector<std::int64_t>;

/// A set of up to 64 elements (nodes or steps), one bit each.
using Set = std::uint64_t;
inline Set bit(std::int32_t element) { return Set{1} << element; }
inline bool contains(Set set, std::int32_t element) { return (set >> element & 1) != 0; }
inline Set first(std::int32_t count) { return count == 64 ? ~Set{0} : bit(count) - 1; }

/// What is to be ordered: which elements come before which, memory after a set of them, and while one more runs.
struct OrderModel {
  std::int32_t count = 0;
  std::vector<Set> predecessors, successors;
  std::function<std::int64_t(Set)> memory;
  std::function<std::int64_t(Set, std::int32_t)> during;

  bool ready(Set done, std::int32_t next) const {
    return !contains(done, next) && (predecessors[static_cast<std::size_t>(next)] & ~done) == 0;
  }
};

template <class Successors>
OrderModel precedence(std::int32_t count, const Successors& successors_of) {
  OrderModel model;
  model.count = count;
  model.predecessors.resize(static_cast<std::size_t>(count));
  model.successors.resize(static_cast<std::size_t>(count));
  for (std::int32_t v = 0; v < count; ++v) {
    for (const std::int32_t w : successors_of(v)) {
      model.successors[static_cast<std::size_t>(v)] |= bit(w);
      model.predecessors[static_cast<std::size_t>(w)] |= bit(v);
    }
  }
  return model;
}

/// Definition 4.1, with kept nodes. The graph must outlive the model, here and below.
inline OrderModel model_of(const core::Graph& graph) {
  OrderModel model = precedence(graph.node_count(), [&](core::NodeId v) { return graph.readers(v); });
  const auto memory = [&graph, readers = model.successors](Set done) {
    std::int64_t bytes = 0;
    for (core::NodeId v = 0; v < graph.node_count(); ++v) {
      const bool unread = (readers[static_cast<std::size_t>(v)] & ~done) != 0;
      if (contains(done, v) && (graph.keep(v) || unread)) bytes += graph.size(v);
    }
    return bytes;
  };
  model.memory = memory;
  model.during = [&graph, memory](Set done, std::int32_t v) { return memory(done) + graph.size(v) + graph.scratch(v); };
  return model;
}

/// Definition 2.1. It has no moment during a node: the higher of before and after stands for it.
inline OrderModel model_of(const core::NodeSumGraph& graph) {
  OrderModel model = precedence(graph.node_count(), [&](core::NodeId v) { return graph.successors(v); });
  const auto memory = [&graph](Set done) {
    std::int64_t bytes = 0;
    for (core::NodeId v = 0; v < graph.node_count(); ++v) bytes += contains(done, v) ? graph.weight(v) : 0;
    return bytes;
  };
  model.memory = memory;
  model.during = [memory](Set done, std::int32_t v) { return std::max(memory(done), memory(done | bit(v))); };
  return model;
}

/// As StepGraph's comment says: a step raises, then lowers; its output goes when its successors have run.
inline OrderModel model_of(const solvers::StepGraph& graph) {
  OrderModel model = precedence(graph.step_count(), [&](solvers::StepId s) { return graph.successors(s); });
  const auto memory = [&graph, successors = model.successors](Set done) {
    std::int64_t bytes = 0;
    for (solvers::StepId s = 0; s < graph.step_count(); ++s) {
      if (!contains(done, s)) continue;
      bytes += graph[s].rise - graph[s].drop;
      if ((successors[static_cast<std::size_t>(s)] & ~done) == 0) bytes -= graph[s].output;
    }
    return bytes;
  };
  model.memory = memory;
  model.during = [&graph, memory](Set done, std::int32_t s) { return memory(done) + graph[s].rise; };
  return model;
}

/// (memory(from), during, after, during, after, ...).
inline Bytes profile_of(const OrderModel& model, const Order& order, Set from = 0) {
  Bytes bytes{model.memory(from)};
  for (const std::int32_t v : order) {
    bytes.push_back(model.during(from, v));
    from |= bit(v);
    bytes.push_back(model.memory(from));
  }
  return bytes;
}

/// Is `order` a way from the cut `from` to the cut `to`?
inline bool leads(const OrderModel& model, const Order& order, Set from, Set to) {
  for (const std::int32_t v : order) {
    if (v < 0 || v >= model.count || !model.ready(from, v)) return false;
    from |= bit(v);
  }
  return from == to;
}

/// Every order, at most `cap` of them; nothing if there are more.
inline std::optional<std::vector<Order>> all_orders(const OrderModel& model, std::size_t cap) {
  std::vector<Order> orders;
  Order order;
  const std::function<bool(Set)> extend = [&](Set done) {
    if (done == first(model.count)) {
      orders.push_back(order);
      return orders.size() <= cap;
    }
    for (std::int32_t v = 0; v < model.count; ++v) {
      if (!model.ready(done, v)) continue;
      order.push_back(v);
      const bool within = extend(done | bit(v));
      order.pop_back();
      if (!within) return false;
    }
    return true;
  };
  if (!extend(0)) return std::nullopt;
  return orders;
}

/// All topological cuts between two, by rising number of elements, and all single steps between them, by `from`. Every
/// order is a way through it, and every way is an order.
struct CutLattice {
  struct Move {
    std::size_t from = 0, to = 0;  ///< of `cuts`
    std::int32_t element = 0;
    std::int64_t during = 0;
  };
  std::vector<Set> cuts;
  Bytes memory;  ///< after each cut
  std::vector<Move> moves;
};

inline CutLattice cut_lattice(const OrderModel& model, Set from, Set to) {
  CutLattice lattice;
  std::unordered_map<Set, std::size_t> index{{from, 0}};
  lattice.cuts.push_back(from);
  for (std::size_t i = 0; i < lattice.cuts.size(); ++i) {
    const Set done = lattice.cuts[i];
    lattice.memory.push_back(model.memory(done));
    for (std::int32_t v = 0; v < model.count; ++v) {
      if (!contains(to, v) || !model.ready(done, v)) continue;
      const auto [found, is_new] = index.emplace(done | bit(v), lattice.cuts.size());
      if (is_new) lattice.cuts.push_back(done | bit(v));
      lattice.moves.push_back({i, found->second, v, model.during(done, v)});
    }
  }
  return lattice;
}
inline CutLattice cut_lattice(const OrderModel& model) { return cut_lattice(model, 0, first(model.count)); }

/// The least over all ways of the highest memory, for the way to each cut.
inline Bytes least_peaks(const CutLattice& lattice) {
  Bytes least(lattice.cuts.size(), std::numeric_limits<std::int64_t>::max());
  least[0] = lattice.memory[0];
  for (const CutLattice::Move& move : lattice.moves) {
    const std::int64_t peak = std::max({least[move.from], move.during, lattice.memory[move.to]});
    least[move.to] = std::min(least[move.to], peak);
  }
  return least;
}
inline std::int64_t least_peak(const CutLattice& lattice) { return least_peaks(lattice).back(); }

/// Some way of least peak, any of them.
inline Order least_peak_order(const CutLattice& lattice, Random& random) {
  const Bytes least = least_peaks(lattice);
  Order reversed;
  for (std::size_t at = lattice.cuts.size() - 1; at != 0;) {
    std::vector<const CutLattice::Move*> good;
    for (const CutLattice::Move& move : lattice.moves) {
      if (move.to == at && std::max(least[move.from], move.during) <= least.back()) good.push_back(&move);
    }
    const CutLattice::Move& move = *random.pick(good);
    reversed.push_back(move.element);
    at = move.from;
  }
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

using core::reference::dominates_by_pointers;

/// Does profile `a` dominate that of every way through the lattice, without going over them one by one?
///
/// By Definition 2.4, `a` does not dominate `b` if there is a place i of `a`, with the extremes of `a` up to i (peak
/// P0, valley V0) and from i on (P1, V1), such that no place j of `b` has all of: b reached P0 at or before j, b was
/// never below V0 until j, b reaches P1 at or after j, b is never below V1 from j on. The first and the last of these
/// hold from some place on, the others up to some place, so there is no such j exactly if
///   (1) b stays below P0 until it is below V0, or to its end; or
///   (2) b stays below P0 up to a place, and below P1 after it; or
///   (3) b is below V0 somewhere, and there or later below V1; or
///   (4) b is below V1 somewhere, or at its beginning, and below P1 ever after.
/// Each of them asks only whether some way exists, and reachability over the lattice answers that.
inline bool dominates_all(const Bytes& a, const CutLattice& lattice) {
  using Extremes = std::array<std::int64_t, 4>;
  std::set<Extremes> places;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto here = a.begin() + static_cast<std::ptrdiff_t>(i);
    places.insert({*std::max_element(a.begin(), here + 1), *std::min_element(a.begin(), here + 1),
                   *std::max_element(here, a.end()), *std::min_element(here, a.end())});
  }
  const std::size_t cuts = lattice.cuts.size(), moves = lattice.moves.size();
  std::vector<char> low_cut(cuts), low_move(moves);      // reached from the beginning below P0
  std::vector<char> done_cut(cuts), done_move(moves);    // reaches the end below P1
  std::vector<char> after_cut(cuts), after_move(moves);  // below V0 here or before
  for (const auto& [peak_0, valley_0, peak_1, valley_1] : places) {
    std::fill(low_cut.begin(), low_cut.end(), 0);
    std::fill(done_cut.begin(), done_cut.end(), 0);
    for (std::size_t c = 0; c < cuts; ++c) after_cut[c] = lattice.memory[c] < valley_0;
    low_cut.front() = lattice.memory.front() < peak_0;
    done_cut.back() = lattice.memory.back() < peak_1;
    for (std::size_t m = 0; m < moves; ++m) {
      const auto& [from, to, element, during] = lattice.moves[m];
      low_move[m] = low_cut[from] && during < peak_0;
      if (low_move[m] && lattice.memory[to] < peak_0) low_cut[to] = 1;
      after_move[m] = after_cut[from] || during < valley_0;
      if (after_move[m]) after_cut[to] = 1;
    }
    for (std::size_t m = moves; m-- > 0;) {
      const auto& [from, to, element, during] = lattice.moves[m];
      done_move[m] = done_cut[to] && during < peak_1;
      if (done_move[m] && lattice.memory[from] < peak_1) done_cut[from] = 1;
    }
    if (low_cut.back() || done_cut.front()) return false;
    for (std::size_t c = 0; c < cuts; ++c) {
      if (low_cut[c] && lattice.memory[c] < valley_0) return false;
      if (after_cut[c] && lattice.memory[c] < valley_1) return false;
      if (done_cut[c] && lattice.memory[c] < valley_1) return false;
    }
    for (std::size_t m = 0; m < moves; ++m) {
      const auto& [from, to, element, during] = lattice.moves[m];
      if (low_move[m] && during < valley_0) return false;
      if (after_move[m] && during < valley_1) return false;
      if (done_move[m] && during < valley_1) return false;
      if ((low_cut[from] && done_move[m]) || (low_move[m] && done_cut[to])) return false;
    }
  }
  return true;
}

/// An order whose profile `a` does not dominate, by going over the orders; empty if there is none.
inline Order find_undominated(const Bytes& a, const OrderModel& model, std::size_t cap) {
  for (const Order& order : all_orders(model, cap).value_or(std::vector<Order>{})) {
    if (!dominates_by_pointers(a, profile_of(model, order))) return order;
  }
  return {};
}

inline std::vector<core::NodeId> sources(const core::Graph& graph) {
  std::vector<core::NodeId> found;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.inputs(v).empty()) found.push_back(v);
  }
  return found;
}
inline std::vector<core::NodeId> sinks(const core::Graph& graph) {
  std::vector<core::NodeId> found;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.readers(v).empty()) found.push_back(v);
  }
  return found;
}

/// Definition 5.2, for a graph with one source and one sink, which are not the same: from after the source, to the sink
/// with its output in memory.
inline Bytes internal_profile_of(const core::Graph& graph, const Order& order) {
  Bytes bytes = core::reference::profile(graph, core::Schedule{order});
  bytes.erase(bytes.begin(), bytes.begin() + 2);
  if (!graph.keep(order.back())) bytes.back() += graph.size(order.back());
  return bytes;
}
/// The ways of all internal profiles.
inline CutLattice internal_lattice(const core::Graph& graph) {
  CutLattice lattice = cut_lattice(model_of(graph), bit(sources(graph).at(0)), first(graph.node_count()));
  const core::NodeId sink = sinks(graph).at(0);
  if (!graph.keep(sink)) lattice.memory.back() += graph.size(sink);
  return lattice;
}

/// Every node has at most one reader.
inline bool is_in_forest(const core::Graph& graph) {
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.readers(v).size() > 1) return false;
  }
  return true;
}
/// Every node has at most one input.
inline bool is_out_forest(const core::Graph& graph) {
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.inputs(v).size() > 1) return false;
  }
  return true;
}

/// The nodes that keep the graph from being a pumpkin (Definition 8.1): further sources and sinks, and nodes between
/// the ends that are not on one chain. The ends of a pumpkin are two nodes.
inline std::vector<core::NodeId> not_of_pumpkin(const core::Graph& graph) {
  std::vector<core::NodeId> found;
  const std::size_t source_count = sources(graph).size(), sink_count = sinks(graph).size();
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    const std::size_t in = graph.inputs(v).size(), out = graph.readers(v).size();
    const bool extra_source = in == 0 && source_count > 1, extra_sink = out == 0 && sink_count > 1;
    const bool crossing = (in > 1 && out > 0) || (out > 1 && in > 0), lonely = in == 0 && out == 0;
    if (extra_source || extra_sink || crossing || lonely) found.push_back(v);
  }
  return found;
}
inline bool is_pumpkin(const core::Graph& graph) { return graph.node_count() > 1 && not_of_pumpkin(graph).empty(); }

/// The nodes that are left, of a graph with one more source and one more sink around it, when no node between one
/// predecessor and one successor remains: each such node becomes an edge, and equal edges are one. None are left
/// exactly if that graph is series-parallel (Valdes, Tarjan and Lawler 1982).
inline std::vector<core::NodeId> not_series_parallel(const core::Graph& graph) {
  const core::NodeId n = graph.node_count(), source = n, sink = n + 1;
  std::set<std::pair<core::NodeId, core::NodeId>> edges;
  for (core::NodeId v = 0; v < n; ++v) {
    for (const core::NodeId w : graph.readers(v)) edges.insert({v, w});
    if (graph.inputs(v).empty()) edges.insert({source, v});
    if (graph.readers(v).empty()) edges.insert({v, sink});
  }
  std::set<core::NodeId> left;
  for (core::NodeId v = 0; v < n; ++v) left.insert(v);
  for (bool changed = true; changed;) {
    changed = false;
    for (const core::NodeId v : std::vector<core::NodeId>(left.begin(), left.end())) {
      std::vector<core::NodeId> from, to;
      for (const auto& [a, b] : edges) {
        if (b == v) from.push_back(a);
        if (a == v) to.push_back(b);
      }
      if (from.size() != 1 || to.size() != 1) continue;
      edges.erase({from[0], v});
      edges.erase({v, to[0]});
      edges.insert({from[0], to[0]});
      left.erase(v);
      changed = true;
    }
  }
  return {left.begin(), left.end()};
}
inline bool is_series_parallel(const core::Graph& graph) { return not_series_parallel(graph).empty(); }

/// Definition 7.3: one source, one sink, and nobody but the source has several readers.
inline bool is_starborescence(const core::Graph& graph) {
  if (graph.node_count() < 2 || sources(graph).size() != 1 || sinks(graph).size() != 1) return false;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (!graph.inputs(v).empty() && graph.readers(v).size() > 1) return false;
  }
  return true;
}

/// The graph written out, one node a line, for messages.
inline std::string describe(const core::Graph& graph) {
  std::string text = "\n";
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    text += fmt::format("  {}: {} size {} scratch {}{} inputs", v, graph.name(v), graph.size(v), graph.scratch(v),
                        graph.keep(v) ? " keep" : "");
    for (const core::NodeId u : graph.inputs(v)) text += fmt::format(" {}", u);
    text += "\n";
  }
  return text;
}
inline std::string describe(const core::NodeSumGraph& graph) {
  std::string text = "\n";
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    text += fmt::format("  {}: weight {} to", v, graph.weight(v));
    for (const core::NodeId w : graph.successors(v)) text += fmt::format(" {}", w);
    text += "\n";
  }
  return text;
}
inline std::string describe(const solvers::StepGraph& graph) {
  std::string text = "\n";
  for (solvers::StepId s = 0; s < graph.step_count(); ++s) {
    text += fmt::format("  {}: rise {} drop {} output {} to", s, graph[s].rise, graph[s].drop, graph[s].output);
    for (const solvers::StepId t : graph.successors(s)) text += fmt::format(" {}", t);
    text += "\n";
  }
  return text;
}
template <class T>
std::string describe(const std::vector<T>& values) {
  std::string text = "(";
  for (const T& value : values) text += fmt::format(" {}", value);
  return text + " )";
}

}  // namespace cairn::tests
