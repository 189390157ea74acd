#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/graph.h"
#include "cairn/core/node_sum.h"
#include "cairn/core/reference.h"
#include "cairn/core/schedule.h"

/// The vocabulary of Jin et al., "New Tools for Peak Memory Scheduling", written out literally and slowly, as the text
/// words it: the yardstick for everything that orders a graph without recomputation. It uses the accessors of Graph and
/// NodeSumGraph and the plain structs of the public headers, and shares no code with what it measures. Numbers in
/// parentheses are those of the paper. Node sets are bit masks, so graphs have at most 20 nodes. Memory in bytes.
namespace cairn::core::reference {

// Dominance of sequences (section 2.1). None of them may be empty.

/// Definition 2.3: can two pointers go from the beginnings to the ends, one of them one entry at a time, so that a's
/// value is never above b's? Reachability in the grid of all pairs. O(|a| * |b|).
inline bool dominates_by_pointers(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  std::vector<std::vector<bool>> reachable(a.size(), std::vector<bool>(b.size(), false));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      const bool arrives = (i == 0 && j == 0) || (i > 0 && reachable[i - 1][j]) || (j > 0 && reachable[i][j - 1]);
      reachable[i][j] = arrives && a[i] <= b[j];
    }
  }
  return reachable.back().back();
}

/// Definition 2.4: for every place in a there is one in b so that the highest and the lowest value from it on and up to
/// it are at most b's. O(|a| * |b| * (|a| + |b|)).
inline bool dominates_by_extremes(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  const auto highest = [](std::span<const std::int64_t> values) {
    return *std::max_element(values.begin(), values.end());
  };
  const auto lowest = [](std::span<const std::int64_t> values) {
    return *std::min_element(values.begin(), values.end());
  };
  const auto matches = [&](std::size_t i, std::size_t j) {
    return highest(a.subspan(i)) <= highest(b.subspan(j)) && lowest(a.subspan(i)) <= lowest(b.subspan(j)) &&
           highest(a.first(i + 1)) <= highest(b.first(j + 1)) && lowest(a.first(i + 1)) <= lowest(b.first(j + 1));
  };
  for (std::size_t i = 0; i < a.size(); ++i) {
    bool matched = false;
    for (std::size_t j = 0; j < b.size() && !matched; ++j) matched = matches(i, j);
    if (!matched) return false;
  }
  return true;
}

// Sets and orders of the nodes of a Graph or a NodeSumGraph.

using NodeSet = std::uint32_t;  ///< bit v: node v

inline bool contains(NodeSet set, NodeId node) { return (set >> node & 1U) != 0; }
inline NodeSet with(NodeSet set, NodeId node) { return set | NodeSet{1} << node; }

inline std::span<const NodeId> predecessors(const Graph& graph, NodeId node) { return graph.inputs(node); }
inline std::span<const NodeId> predecessors(const NodeSumGraph& graph, NodeId node) { return graph.predecessors(node); }
inline std::span<const NodeId> successors(const Graph& graph, NodeId node) { return graph.readers(node); }
inline std::span<const NodeId> successors(const NodeSumGraph& graph, NodeId node) { return graph.successors(node); }

/// All nodes. Throws std::invalid_argument above 20.
template <class AnyGraph>
NodeSet all_nodes(const AnyGraph& graph) {
  if (graph.node_count() > 20) throw std::invalid_argument("the reference is for graphs of at most 20 nodes");
  return (NodeSet{1} << graph.node_count()) - 1;
}

inline NodeSet set_of(std::span<const NodeId> sequence) {
  NodeSet set = 0;
  for (const NodeId node : sequence) set = with(set, node);
  return set;
}

/// Definition 3.2: no edge goes from outside the set into it.
template <class AnyGraph>
bool is_topological_cut(const AnyGraph& graph, NodeSet set) {
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    if (!contains(set, node)) continue;
    for (const NodeId before : reference::predecessors(graph, node)) {
      if (!contains(set, before)) return false;
    }
  }
  return true;
}

/// Every topological cut, the empty one and the whole graph included. O(2^n * m).
template <class AnyGraph>
std::vector<NodeSet> topological_cuts(const AnyGraph& graph) {
  std::vector<NodeSet> cuts;
  for (NodeSet set = 0; set <= all_nodes(graph); ++set) {
    if (is_topological_cut(graph, set)) cuts.push_back(set);
  }
  return cuts;
}

/// Definition 3.4: every prefix of these distinct nodes is a topological cut.
template <class AnyGraph>
bool is_partial_schedule(const AnyGraph& graph, std::span<const NodeId> sequence) {
  NodeSet set = 0;
  for (const NodeId node : sequence) {
    if (node < 0 || node >= graph.node_count() || contains(set, node)) return false;
    set = with(set, node);
    if (!is_topological_cut(graph, set)) return false;
  }
  return true;
}

/// Definition 3.5, sigma cup tau: `first`, then what `second` has beyond it, in its order.
inline std::vector<NodeId> united(std::span<const NodeId> first, std::span<const NodeId> second) {
  std::vector<NodeId> sequence(first.begin(), first.end());
  for (const NodeId node : second) {
    if (std::find(first.begin(), first.end(), node) == first.end()) sequence.push_back(node);
  }
  return sequence;
}

/// Definition 3.5, sigma cap T: what `sequence` has of the set, in its order.
inline std::vector<NodeId> restricted(std::span<const NodeId> sequence, NodeSet set) {
  std::vector<NodeId> kept;
  for (const NodeId node : sequence) {
    if (contains(set, node)) kept.push_back(node);
  }
  return kept;
}

/// The topological orders that continue `prefix`; see for_each_topological_order.
template <class AnyGraph, class Visit>
void for_each_continuation(const AnyGraph& graph, std::vector<NodeId>& prefix, NodeSet within, const Visit& visit) {
  const NodeSet placed = set_of(prefix);
  if (placed == within) visit(std::as_const(prefix));
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    bool ready = contains(within, node) && !contains(placed, node);
    for (const NodeId before : reference::predecessors(graph, node)) {
      ready = ready && (contains(placed, before) || !contains(within, before));
    }
    if (!ready) continue;
    prefix.push_back(node);
    for_each_continuation(graph, prefix, within, visit);
    prefix.pop_back();
  }
}

/// Calls visit(order) for every topological order of the subgraph that the set induces.
template <class AnyGraph, class Visit>
void for_each_topological_order(const AnyGraph& graph, NodeSet within, const Visit& visit) {
  std::vector<NodeId> prefix;
  for_each_continuation(graph, prefix, within, visit);
}

template <class AnyGraph>
std::vector<std::vector<NodeId>> topological_orders(const AnyGraph& graph, NodeSet within) {
  std::vector<std::vector<NodeId>> orders;
  for_each_topological_order(graph, within, [&](const std::vector<NodeId>& order) { orders.push_back(order); });
  return orders;
}
template <class AnyGraph>
std::vector<std::vector<NodeId>> topological_orders(const AnyGraph& graph) {
  return topological_orders(graph, all_nodes(graph));
}

/// How many orders topological_orders(graph) would return. O(2^n * (n + m)).
template <class AnyGraph>
std::int64_t topological_order_count(const AnyGraph& graph) {
  std::vector<std::int64_t> count(static_cast<std::size_t>(all_nodes(graph)) + 1, 0);
  count[0] = 1;
  for (NodeSet set = 1; set < count.size(); ++set) {
    if (!is_topological_cut(graph, set)) continue;
    for (NodeId last = 0; last < graph.node_count(); ++last) {
      if (contains(set, last)) count[set] += count[set ^ with(0, last)];  // 0 where the rest is no cut
    }
  }
  return count.back();
}

// The node-sum model (Definition 2.1).

/// An order of all n nodes in which no edge goes from a later node to an earlier one.
inline bool valid(const NodeSumGraph& graph, std::span<const NodeId> order) {
  if (order.size() != static_cast<std::size_t>(graph.node_count())) return false;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || order[i] >= graph.node_count()) return false;
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      if (order[i] == order[j]) return false;
      for (const NodeId before : graph.predecessors(order[i])) {
        if (before == order[j]) return false;
      }
    }
  }
  return true;
}

/// mem_NS: the sum of the weights.
inline std::int64_t memory(const NodeSumGraph& graph, NodeSet set) {
  std::int64_t bytes = 0;
  for (NodeId node = 0; node < graph.node_count(); ++node) bytes += contains(set, node) ? graph.weight(node) : 0;
  return bytes;
}

/// mem_NS of every prefix, from the empty one on. For schedules and partial ones.
inline std::vector<std::int64_t> profile(const NodeSumGraph& graph, std::span<const NodeId> order) {
  std::vector<std::int64_t> bytes;
  for (std::size_t i = 0; i <= order.size(); ++i) {
    std::int64_t sum = 0;
    for (const NodeId node : order.first(i)) sum += graph.weight(node);
    bytes.push_back(sum);
  }
  return bytes;
}

inline std::int64_t peak(const NodeSumGraph& graph, std::span<const NodeId> order) {
  const std::vector<std::int64_t> bytes = reference::profile(graph, order);
  return *std::max_element(bytes.begin(), bytes.end());
}

/// The topological cuts of least memory.
inline std::vector<NodeSet> minimum_cuts(const NodeSumGraph& graph) {
  std::vector<NodeSet> least;
  for (const NodeSet cut : topological_cuts(graph)) {
    if (!least.empty() && memory(graph, cut) < memory(graph, least.front())) least.clear();
    if (least.empty() || memory(graph, cut) == memory(graph, least.front())) least.push_back(cut);
  }
  return least;
}

/// Eager (section 4.1): each node of weight <= 0 stands immediately after the last of its in-neighbours, one without
/// any at the beginning. Nodes that share that place come one after another in any order, and so do those that follow
/// from them: what may stand in between are nodes of weight <= 0, never one of positive weight.
inline bool eager(const NodeSumGraph& graph, std::span<const NodeId> order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (graph.weight(order[i]) > 0) continue;
    const std::span<const NodeId> before = graph.predecessors(order[i]);
    for (std::size_t j = i; j-- > 0 && std::find(before.begin(), before.end(), order[j]) == before.end();) {
      if (graph.weight(order[j]) > 0) return false;
    }
  }
  return true;
}

// Computation graphs (section 4). A kept output, which the paper does not have, is as if one more reader never ran.

/// Definition 4.1 by its sets, for an order of all nodes, each once.
inline std::vector<std::int64_t> profile(const Graph& graph, std::span<const NodeId> order) {
  const auto held = [&](std::size_t done,
                        std::size_t next) {  // of the first `done`: what is read by step `next` or later
    std::int64_t bytes = 0;
    for (const NodeId node : order.first(done)) {
      bool needed = graph.keep(node);
      for (const NodeId later : order.subspan(next)) needed = needed || reads(graph, later, node);
      if (needed) bytes += graph.size(node);
    }
    return bytes;
  };
  std::vector<std::int64_t> bytes{0};
  for (std::size_t i = 0; i < order.size(); ++i) {
    bytes.push_back(held(i, i) + graph.size(order[i]) + graph.scratch(order[i]));
    bytes.push_back(held(i + 1, i + 1));
  }
  return bytes;
}

inline std::int64_t peak(const Graph& graph, std::span<const NodeId> order) {
  const std::vector<std::int64_t> bytes = reference::profile(graph, order);
  return *std::max_element(bytes.begin(), bytes.end());
}

/// profile* (Definition 5.2) of an order of the subgraph that the set induces, as if that were the whole graph: from
/// after its source has run to after its sink has run, whose output is still held. The order must not be empty.
inline std::vector<std::int64_t> internal_profile(const Graph& graph, NodeSet set, std::span<const NodeId> order) {
  const auto held = [&](std::size_t done, std::size_t next) {
    std::int64_t bytes = 0;
    for (const NodeId node : order.first(done)) {
      bool needed = graph.keep(node) || node == order.back();
      for (const NodeId later : order.subspan(next))
        needed = needed || (contains(set, later) && reads(graph, later, node));
      if (needed) bytes += graph.size(node);
    }
    return bytes;
  };
  std::vector<std::int64_t> bytes;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0) bytes.push_back(held(i, i) + graph.size(order[i]) + graph.scratch(order[i]));
    bytes.push_back(held(i + 1, i + 1));
  }
  return bytes;
}
inline std::vector<std::int64_t> internal_profile(const Graph& graph, std::span<const NodeId> order) {
  return reference::internal_profile(graph, all_nodes(graph), order);
}

/// The node of Algorithm 3 that stands for a part of a computation node's life.
enum class Part : std::uint8_t { start, finish, release };
using PartOf = std::pair<NodeId, Part>;

/// What Algorithm 3 makes of a computation graph: weighted nodes and edges.
struct Reduction {
  std::map<PartOf, std::int64_t> weights;
  std::set<std::pair<PartOf, PartOf>> edges;
};

/// Algorithm 3, line by line. Where the paper releases a kept output, nothing is done.
inline Reduction reduction(const Graph& graph) {
  Reduction result;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    const PartOf start{v, Part::start};
    const PartOf finish{v, Part::finish};
    result.weights[start] = graph.scratch(v) + graph.size(v);
    result.weights[finish] = -graph.scratch(v);
    for (NodeId u = 0; u < graph.node_count(); ++u) {
      const bool read_by_v_alone = graph.readers(u).size() == 1 && graph.readers(u)[0] == v;
      if (read_by_v_alone && !graph.keep(u)) result.weights[finish] -= graph.size(u);
    }
    result.edges.insert({start, finish});
    for (const NodeId u : graph.inputs(v)) result.edges.insert({{u, Part::finish}, start});
    if (graph.keep(v)) continue;
    if (graph.readers(v).empty()) result.weights[finish] -= graph.size(v);
    if (graph.readers(v).size() < 2) continue;
    result.weights[{v, Part::release}] = -graph.size(v);
    for (const NodeId x : graph.readers(v)) result.edges.insert({{x, Part::start}, {v, Part::release}});
  }
  return result;
}

// Isolated subgraphs, by all paths of the graph.

/// The only node of the set without predecessors in it, and the only one without successors in it: the source and the
/// sink of the subgraph it induces. Nothing where there are several.
template <class AnyGraph>
std::optional<std::pair<NodeId, NodeId>> terminals(const AnyGraph& graph, NodeSet set) {
  const auto meets = [set](std::span<const NodeId> nodes) {
    return std::any_of(nodes.begin(), nodes.end(), [set](NodeId node) { return contains(set, node); });
  };
  std::vector<NodeId> sources;
  std::vector<NodeId> sinks;
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    if (!contains(set, node)) continue;
    if (!meets(reference::predecessors(graph, node))) sources.push_back(node);
    if (!meets(reference::successors(graph, node))) sinks.push_back(node);
  }
  if (sources.size() != 1 || sinks.size() != 1) return std::nullopt;
  return std::pair{sources.front(), sinks.front()};
}

/// Does `accept(path)` hold for `path` and for every path that continues it?
template <class AnyGraph, class Accept>
bool all_paths_from(const AnyGraph& graph, std::vector<NodeId>& path, const Accept& accept) {
  if (!accept(std::as_const(path))) return false;
  for (const NodeId next : reference::successors(graph, path.back())) {
    path.push_back(next);
    const bool accepted = all_paths_from(graph, path, accept);
    path.pop_back();
    if (!accepted) return false;
  }
  return true;
}

template <class AnyGraph>
bool isolated(const AnyGraph& graph, NodeSet set, bool source_may_be_read_outside) {
  const auto ends = terminals(graph, set);
  if (!ends || ends->first == ends->second) return false;
  const auto [source, sink] = *ends;
  const auto accept = [&, s = source, t = sink](const std::vector<NodeId>& path) {
    const auto inside = std::count_if(path.begin(), path.end(), [set](NodeId node) { return contains(set, node); });
    const auto visits = [&](NodeId node) { return std::find(path.begin(), path.end(), node) != path.end(); };
    const NodeId x = path.front();
    const NodeId y = path.back();
    if (!contains(set, x) && contains(set, y)) return visits(s) || (inside == 1 && y == t);
    if (contains(set, x) && !contains(set, y)) {
      return visits(t) || (source_may_be_read_outside && inside == 1 && x == s);
    }
    return true;
  };
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    std::vector<NodeId> path{node};
    if (!all_paths_from(graph, path, accept)) return false;
  }
  return true;
}

/// Definition 5.1.
inline bool isolated(const Graph& graph, NodeSet set) { return isolated(graph, set, false); }
/// Definition 6.1: nodes outside may also follow the source.
inline bool isolated(const NodeSumGraph& graph, NodeSet set) { return isolated(graph, set, true); }

// Segments (section 6). The paper numbers the nodes 1..k of a path and looks at the memory after 1..k-1 of them; entry
// e of `values` is the memory after node e + 1. Ranges [left, right] are closed, as in the paper.

/// The first (or the last) place of [left, right] that holds its highest value, or its lowest one.
inline std::int64_t left_peak(std::span<const std::int64_t> values, std::int64_t left, std::int64_t right) {
  std::int64_t place = left;
  for (std::int64_t i = left; i <= right; ++i) place = values[i] > values[place] ? i : place;
  return place;
}
inline std::int64_t right_peak(std::span<const std::int64_t> values, std::int64_t left, std::int64_t right) {
  std::int64_t place = left;
  for (std::int64_t i = left; i <= right; ++i) place = values[i] >= values[place] ? i : place;
  return place;
}
inline std::int64_t left_valley(std::span<const std::int64_t> values, std::int64_t left, std::int64_t right) {
  std::int64_t place = left;
  for (std::int64_t i = left; i <= right; ++i) place = values[i] < values[place] ? i : place;
  return place;
}
inline std::int64_t right_valley(std::span<const std::int64_t> values, std::int64_t left, std::int64_t right) {
  std::int64_t place = left;
  for (std::int64_t i = left; i <= right; ++i) place = values[i] <= values[place] ? i : place;
  return place;
}

inline PlacedSegment placed_segment(std::span<const std::int64_t> values, std::int64_t begin, std::int64_t peak,
                                    std::int64_t end) {
  PlacedSegment segment;
  segment.rise = values[peak] - values[begin];
  segment.drop = values[peak] - values[end];
  segment.begin = begin;
  segment.peak = peak;
  segment.end = end;
  return segment;
}

/// The negative segments up to `valley`, from left to right.
inline std::vector<PlacedSegment> negative_segments(std::span<const std::int64_t> values, std::int64_t valley) {
  if (valley == 0) return {};
  const std::int64_t peak = left_peak(values, 0, valley);
  const std::int64_t before = left_valley(values, 0, peak);
  std::vector<PlacedSegment> segments = negative_segments(values, before);
  segments.push_back(placed_segment(values, before, peak, valley));
  return segments;
}

/// Definition 6.3: the negative segments up to the first place of least memory, and the nonnegative ones from it on.
inline std::vector<PlacedSegment> segments(std::span<const std::int64_t> values) {
  const auto last = static_cast<std::int64_t>(values.size()) - 1;
  std::int64_t valley = left_valley(values, 0, last);
  std::vector<PlacedSegment> all = negative_segments(values, valley);
  while (valley != last) {
    const std::int64_t peak = right_peak(values, valley, last);
    const std::int64_t next = right_valley(values, peak, last);
    all.push_back(placed_segment(values, valley, peak, next));
    valley = next;
  }
  return all;
}

/// The sort value of Definition 6.6 is one over this number, which is never 0.
inline std::int64_t inverse_sort_value(const Segment& segment) {
  return segment.rise >= segment.drop ? 1 + segment.drop : -1 - segment.rise;
}

/// Is a's sort value below b's? 1 / x < 1 / y, exactly: for x and y of one sign, y < x.
inline bool sort_value_below(const Segment& a, const Segment& b) {
  const std::int64_t x = inverse_sort_value(a);
  const std::int64_t y = inverse_sort_value(b);
  return (x < 0) == (y < 0) ? y < x : x < 0;
}

// Brute force over all topological orders, O(their number).

template <class AnyGraph>
std::int64_t least_peak_over_orders(const AnyGraph& graph) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for_each_topological_order(graph, all_nodes(graph), [&](const std::vector<NodeId>& order) {
    least = std::min(least, reference::peak(graph, order));
  });
  return least;
}

/// Which of these profiles dominate all of them? Dominance is transitive (Lemma 2.7), so a profile that dominates all
/// is, when its turn comes, the best so far, and only another such one takes its place.
inline std::vector<std::size_t> dominant_among(const std::vector<std::vector<std::int64_t>>& profiles) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < profiles.size(); ++i) {
    if (dominates_by_pointers(profiles[i], profiles[best])) best = i;
  }
  std::vector<std::size_t> dominant;
  for (const auto& profile : profiles) {
    if (!dominates_by_pointers(profiles[best], profile)) return {};
  }
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    if (dominates_by_pointers(profiles[i], profiles[best])) dominant.push_back(i);
  }
  return dominant;
}

/// All dominant orders: those whose profile dominates every other order's.
template <class AnyGraph>
std::vector<std::vector<NodeId>> dominant_orders(const AnyGraph& graph) {
  const std::vector<std::vector<NodeId>> orders = topological_orders(graph);
  std::vector<std::vector<std::int64_t>> profiles;
  for (const auto& order : orders) profiles.push_back(reference::profile(graph, order));
  std::vector<std::vector<NodeId>> dominant;
  for (const std::size_t i : dominant_among(profiles)) dominant.push_back(orders[i]);
  return dominant;
}

/// The orders of an isolated subgraph whose internal profile dominates every other order's.
inline std::vector<std::vector<NodeId>> internally_dominant_orders(const Graph& graph, NodeSet set) {
  const std::vector<std::vector<NodeId>> orders = topological_orders(graph, set);
  std::vector<std::vector<std::int64_t>> profiles;
  for (const auto& order : orders) profiles.push_back(reference::internal_profile(graph, set, order));
  std::vector<std::vector<NodeId>> dominant;
  for (const std::size_t i : dominant_among(profiles)) dominant.push_back(orders[i]);
  return dominant;
}

}  // namespace cairn::core::reference
