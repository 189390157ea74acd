#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/order/internal/papers/node_sum.h"
#include "cairn/solvers/order/internal/reduction/step_graph.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/reference/reference_profiles.h"
#include "cairn/tests/support/random_graph.h"

/// This is a literal implementation of the definitions of Jin et al., "New Tools for Peak Memory Scheduling", without
/// regard to speed. It is the reference for all code that orders a graph without recomputation. It uses the accessors
/// of the graphs and the plain structs of the public headers. It uses none of the paper's algorithms, and shares no
/// code with the code that it tests. Numbers in parentheses are those of the paper. Most functions enumerate all
/// topological cuts or all orders, so they are only for graphs with few of these. Memory is in bytes.
namespace cairn::core::reference {

using solvers::NodeSumGraph;
using Order = std::vector<NodeId>;
using Bytes = std::vector<std::int64_t>;

// The following functions are about sets and orders of nodes, or of steps.

using NodeSet = std::uint64_t;  ///< bit v stands for node v

inline NodeSet bit(NodeId node) { return NodeSet{1} << node; }
inline bool contains(NodeSet set, NodeId node) { return (set >> node & 1) != 0; }
inline NodeSet first(NodeId count) { return count == 64 ? ~NodeSet{0} : bit(count) - 1; }
inline NodeSet set_of(std::span<const NodeId> sequence) {
  NodeSet set = 0;
  for (const NodeId node : sequence) set |= bit(node);
  return set;
}

/// Describes what is to be ordered: nodes with their precedence. memory(S) is the memory after the nodes S have run,
/// and during(S, v) is the memory while node v runs after them. The graph from which a model is made must outlive the
/// model. The constructors throw std::invalid_argument above 64 nodes.
struct OrderModel {
  NodeId count = 0;
  std::vector<NodeSet> predecessors, successors;
  std::function<std::int64_t(NodeSet)> memory;
  std::function<std::int64_t(NodeSet, NodeId)> during;

  OrderModel() = default;
  /// Sets only the precedence of the nodes. successors_of(v) must return a range of nodes.
  template <class SuccessorsOf>
  OrderModel(NodeId nodes, const SuccessorsOf& successors_of)
      : count(nodes), predecessors(static_cast<std::size_t>(nodes)), successors(static_cast<std::size_t>(nodes)) {
    if (nodes > 64) throw std::invalid_argument("the reference is for graphs of at most 64 nodes");
    for (NodeId v = 0; v < nodes; ++v) {
      for (const NodeId w : successors_of(v)) {
        successors[static_cast<std::size_t>(v)] |= bit(w);
        predecessors[static_cast<std::size_t>(w)] |= bit(v);
      }
    }
  }
  /// Makes the model of a computation graph (Definition 4.1), or of the subgraph that the nodes `within` induce. Kept
  /// outputs, which the paper does not have, are never freed, nor is the output of the node `held`.
  OrderModel(const Graph& graph, NodeSet within = ~NodeSet{0}, NodeId held = kNoNode)
      : OrderModel(graph.node_count(), [&](NodeId v) { return graph.readers(v); }) {
    memory = [&graph, within, held, readers = successors](NodeSet done) {
      std::int64_t bytes = 0;
      for (NodeId v = 0; v < graph.node_count(); ++v) {
        const bool unread = (readers[static_cast<std::size_t>(v)] & within & ~done) != 0;
        if (contains(done, v) && (graph.keep(v) || v == held || unread)) bytes += graph.size(v);
      }
      return bytes;
    };
    during = [&graph, after = memory](NodeSet done, NodeId v) {
      return after(done) + graph.size(v) + graph.scratch(v);
    };
  }
  /// Makes the model of a node-sum graph (Definition 2.1). The paper does not define the memory during a node. Here, it
  /// is the larger one of the memory before and the memory after the node.
  OrderModel(const NodeSumGraph& graph)
      : OrderModel(graph.node_count(), [&](NodeId v) { return graph.successors(v); }) {
    memory = [&graph](NodeSet done) {
      std::int64_t bytes = 0;
      for (NodeId v = 0; v < graph.node_count(); ++v) bytes += contains(done, v) ? graph.weight(v) : 0;
      return bytes;
    };
    during = [after = memory](NodeSet done, NodeId v) { return std::max(after(done), after(done | bit(v))); };
  }
  /// Makes the model of a StepGraph. A step first raises and then lowers memory. Its output is freed after all its
  /// successors have run.
  OrderModel(const solvers::StepGraph& graph)
      : OrderModel(graph.step_count(), [&](NodeId s) { return graph.successors(s); }) {
    memory = [&graph, readers = successors](NodeSet done) {
      std::int64_t bytes = 0;
      for (NodeId s = 0; s < graph.step_count(); ++s) {
        if (!contains(done, s)) continue;
        bytes += graph[s].rise - graph[s].drop;
        if ((readers[static_cast<std::size_t>(s)] & ~done) == 0) bytes -= graph[s].output;
      }
      return bytes;
    };
    during = [&graph, after = memory](NodeSet done, NodeId s) { return after(done) + graph[s].rise; };
  }

  /// Returns whether `next` may run in the subgraph `within` after the nodes `done` have run.
  bool ready(NodeSet done, NodeId next, NodeSet within = ~NodeSet{0}) const {
    return contains(within & ~done, next) && (predecessors[static_cast<std::size_t>(next)] & within & ~done) == 0;
  }
};

/// Returns whether the set is a topological cut (Definition 3.2): no edge leads from outside of the set into the set.
inline bool is_topological_cut(const OrderModel& model, NodeSet set) {
  for (NodeId v = 0; v < model.count; ++v) {
    if (contains(set, v) && (model.predecessors[static_cast<std::size_t>(v)] & ~set) != 0) return false;
  }
  return true;
}

/// Returns whether the nodes are a partial schedule after the cut `from` (Definition 3.4): every prefix of them,
/// together with `from`, is a topological cut. The nodes must be distinct.
inline bool is_partial_schedule(const OrderModel& model, std::span<const NodeId> sequence, NodeSet from = 0) {
  for (const NodeId v : sequence) {
    if (v < 0 || v >= model.count || contains(from, v)) return false;
    from |= bit(v);
    if (!is_topological_cut(model, from)) return false;
  }
  return true;
}
/// Returns whether `order` leads from the cut `from` to the cut `to`.
inline bool leads(const OrderModel& model, std::span<const NodeId> order, NodeSet from, NodeSet to) {
  return is_partial_schedule(model, order, from) && (from | set_of(order)) == to;
}
/// Returns whether `order` contains all nodes, and no edge leads from a later node to an earlier node.
inline bool valid(const OrderModel& model, std::span<const NodeId> order) {
  return leads(model, order, 0, first(model.count));
}

/// Returns whether `order` contains all steps, and no edge leads from a later step to an earlier step. There may be
/// more than 64 steps.
inline bool is_order(const solvers::StepGraph& graph, std::span<const NodeId> order) {
  if (order.size() != static_cast<std::size_t>(graph.step_count())) return false;
  std::vector<bool> done(order.size(), false);
  for (const NodeId s : order) {
    if (s < 0 || s >= graph.step_count() || done[static_cast<std::size_t>(s)]) return false;
    for (const NodeId p : graph.predecessors(s)) {
      if (!done[static_cast<std::size_t>(p)]) return false;
    }
    done[static_cast<std::size_t>(s)] = true;
  }
  return true;
}

/// Returns `first`, followed by the nodes that only `second` contains, in the order of `second` (sigma cup tau of
/// Definition 3.5).
inline Order united(std::span<const NodeId> first, std::span<const NodeId> second) {
  Order sequence(first.begin(), first.end());
  for (const NodeId node : second) {
    if (std::find(first.begin(), first.end(), node) == first.end()) sequence.push_back(node);
  }
  return sequence;
}

/// Returns the nodes of `sequence` that are in the set, in the order of `sequence` (sigma cap T of Definition 3.5).
inline Order restricted(std::span<const NodeId> sequence, NodeSet set) {
  Order kept;
  for (const NodeId node : sequence) {
    if (contains(set, node)) kept.push_back(node);
  }
  return kept;
}

/// Calls visit(order) for every topological order of the subgraph that `within` induces.
template <class Visit>
void for_each_topological_order(const OrderModel& model, NodeSet within, const Visit& visit) {
  Order prefix;
  const auto extend = [&](const auto& self, NodeSet placed) -> void {
    if (placed == within) visit(std::as_const(prefix));
    for (NodeId v = 0; v < model.count; ++v) {
      if (!model.ready(placed, v, within)) continue;
      prefix.push_back(v);
      self(self, placed | bit(v));
      prefix.pop_back();
    }
  };
  extend(extend, 0);
}
template <class Visit>
void for_each_topological_order(const OrderModel& model, const Visit& visit) {
  for_each_topological_order(model, first(model.count), visit);
}

inline std::vector<Order> topological_orders(const OrderModel& model, NodeSet within) {
  std::vector<Order> orders;
  for_each_topological_order(model, within, [&](const Order& order) { orders.push_back(order); });
  return orders;
}
inline std::vector<Order> topological_orders(const OrderModel& model) {
  return topological_orders(model, first(model.count));
}

/// Returns the profile (memory(from), during, after, during, after, ...) of an order that runs after the cut `from`.
inline Bytes profile_of(const OrderModel& model, std::span<const NodeId> order, NodeSet from = 0) {
  Bytes bytes{model.memory(from)};
  for (const NodeId v : order) {
    bytes.push_back(model.during(from, v));
    from |= bit(v);
    bytes.push_back(model.memory(from));
  }
  return bytes;
}

/// All topological cuts between two cuts, sorted by the number of their elements, and all moves between them, sorted by
/// `from`. A move runs one element. The orders are exactly the paths from the first cut to the last cut.
struct CutLattice {
  struct Move {
    std::size_t from = 0, to = 0;  ///< indices in `cuts`
    NodeId element = 0;
    std::int64_t during = 0;
  };
  std::vector<NodeSet> cuts;
  Bytes memory;  ///< memory after each cut
  std::vector<Move> moves;
};

inline CutLattice cut_lattice(const OrderModel& model, NodeSet from, NodeSet to) {
  CutLattice lattice;
  std::unordered_map<NodeSet, std::size_t> index{{from, 0}};
  lattice.cuts.push_back(from);
  for (std::size_t i = 0; i < lattice.cuts.size(); ++i) {
    const NodeSet done = lattice.cuts[i];
    lattice.memory.push_back(model.memory(done));
    for (NodeId v = 0; v < model.count; ++v) {
      if (!contains(to, v) || !model.ready(done, v)) continue;
      const auto [found, is_new] = index.emplace(done | bit(v), lattice.cuts.size());
      if (is_new) lattice.cuts.push_back(done | bit(v));
      lattice.moves.push_back({i, found->second, v, model.during(done, v)});
    }
  }
  return lattice;
}
inline CutLattice cut_lattice(const OrderModel& model) { return cut_lattice(model, 0, first(model.count)); }

/// Returns the number of topological orders.
inline std::int64_t topological_order_count(const OrderModel& model) {
  const CutLattice lattice = cut_lattice(model);
  std::vector<std::int64_t> count(lattice.cuts.size(), 0);
  count[0] = 1;
  for (const CutLattice::Move& move : lattice.moves) count[move.to] += count[move.from];
  return count.back();
}

/// Returns the topological cuts with the least memory.
inline std::vector<NodeSet> minimum_cuts(const OrderModel& model) {
  const CutLattice lattice = cut_lattice(model);
  const std::int64_t least = *std::min_element(lattice.memory.begin(), lattice.memory.end());
  std::vector<NodeSet> cuts;
  for (std::size_t c = 0; c < lattice.cuts.size(); ++c) {
    if (lattice.memory[c] == least) cuts.push_back(lattice.cuts[c]);
  }
  return cuts;
}

/// Returns, for each cut, the least peak of all paths from the first cut to it.
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

/// Returns a random order among those of least peak.
inline Order least_peak_order(const CutLattice& lattice, tests::Random& random) {
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

// The following functions are about the node-sum model (Definition 2.1).

/// Returns mem_NS, i.e. the sum of weights, of every prefix of a complete or partial order, beginning with the empty
/// prefix.
inline Bytes profile(const NodeSumGraph& graph, std::span<const NodeId> order) {
  Bytes bytes;
  for (std::size_t i = 0; i <= order.size(); ++i) {
    std::int64_t sum = 0;
    for (const NodeId node : order.first(i)) sum += graph.weight(node);
    bytes.push_back(sum);
  }
  return bytes;
}

inline std::int64_t peak(const NodeSumGraph& graph, std::span<const NodeId> order) {
  const Bytes bytes = reference::profile(graph, order);
  return *std::max_element(bytes.begin(), bytes.end());
}

/// Returns whether the order is eager (section 4.1). Consider a node of weight <= 0, and the last one of its
/// predecessors or, if it has none, the beginning. All nodes between the two must have weights <= 0.
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

// The following functions are about computation graphs (section 4).

/// Returns the profile of Definition 4.1.
inline Bytes profile(const Graph& graph, std::span<const NodeId> order) {
  return reference::profile(graph, Schedule{{order.begin(), order.end()}});
}

/// Returns profile* (Definition 5.2) of an order of the subgraph that `set` induces. It begins after the source has run
/// and ends after the sink has run, with the sink's output still in memory. Readers outside of the subgraph do not
/// count. The order must not be empty.
inline Bytes internal_profile(const Graph& graph, NodeSet set, std::span<const NodeId> order) {
  return profile_of(OrderModel(graph, set, order.back()), order.subspan(1), bit(order.front()));
}
inline Bytes internal_profile(const Graph& graph, std::span<const NodeId> order) {
  return reference::internal_profile(graph, first(graph.node_count()), order);
}

/// The parts into which Algorithm 3 splits a computation node. Each part becomes a node of the node-sum graph.
enum class Part : std::uint8_t { start, finish, release };
using PartOf = std::pair<NodeId, Part>;

/// The result of Algorithm 3 for a computation graph: nodes with weights, and edges.
struct Reduction {
  std::map<PartOf, std::int64_t> weights;
  std::set<std::pair<PartOf, PartOf>> edges;
};

/// Runs Algorithm 3 line by line. But kept outputs, which the paper does not have, are never released.
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

// The following functions are about isolated subgraphs. They look at all paths of the graph.

/// Returns the source and the sink of the subgraph that the set induces, i.e. its only node without predecessors in the
/// set and its only node without successors in the set. Returns nothing if there are several sources or several sinks.
inline std::optional<std::pair<NodeId, NodeId>> terminals(const OrderModel& model, NodeSet set) {
  Order sources, sinks;
  for (NodeId v = 0; v < model.count; ++v) {
    if (!contains(set, v)) continue;
    if ((model.predecessors[static_cast<std::size_t>(v)] & set) == 0) sources.push_back(v);
    if ((model.successors[static_cast<std::size_t>(v)] & set) == 0) sinks.push_back(v);
  }
  if (sources.size() != 1 || sinks.size() != 1) return std::nullopt;
  return std::pair{sources.front(), sinks.front()};
}

/// Returns whether accept(path) is true for `path` and for every path that extends it.
template <class Accept>
bool all_paths_from(const OrderModel& model, Order& path, const Accept& accept) {
  if (!accept(std::as_const(path))) return false;
  const NodeSet next = model.successors[static_cast<std::size_t>(path.back())];
  for (NodeId v = 0; v < model.count; ++v) {
    if (!contains(next, v)) continue;
    path.push_back(v);
    const bool accepted = all_paths_from(model, path, accept);
    path.pop_back();
    if (!accepted) return false;
  }
  return true;
}

/// Returns whether the subgraph that the set induces is isolated, by Definition 5.1 for computation graphs. If
/// `source_may_be_read_outside` is set, it is by Definition 6.1 for node-sum graphs.
inline bool isolated(const OrderModel& model, NodeSet set, bool source_may_be_read_outside = false) {
  const auto ends = terminals(model, set);
  if (!ends || ends->first == ends->second) return false;
  const auto accept = [&, s = ends->first, t = ends->second](const Order& path) {
    const auto inside = std::count_if(path.begin(), path.end(), [set](NodeId node) { return contains(set, node); });
    const auto visits = [&](NodeId node) { return std::find(path.begin(), path.end(), node) != path.end(); };
    const NodeId x = path.front(), y = path.back();
    if (!contains(set, x) && contains(set, y)) return visits(s) || (inside == 1 && y == t);
    if (contains(set, x) && !contains(set, y)) {
      return visits(t) || (source_may_be_read_outside && inside == 1 && x == s);
    }
    return true;
  };
  for (NodeId v = 0; v < model.count; ++v) {
    Order path{v};
    if (!all_paths_from(model, path, accept)) return false;
  }
  return true;
}

/// Returns whether a path may replace this isolated subgraph (Lemma 5.4). Among its nodes, only the source and the sink
/// may be kept, because only these may be kept on a path. (The paper has no kept nodes.) The scratch of the sink must
/// not be below minus the size of the inputs that the sink frees in the subgraph. Otherwise, the sink would also free
/// an input from outside, and the internal profile ends before that.
inline bool replaceable(const Graph& graph, NodeSet set) {
  const auto ends = terminals(graph, set);
  if (!ends || !isolated(graph, set)) return false;
  const auto [source, sink] = *ends;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (v != source && v != sink && graph.keep(v) && contains(set, v)) return false;
  }
  std::int64_t freed = 0;
  for (const NodeId input : graph.inputs(sink)) {
    if (contains(set, input) && graph.readers(input).size() == 1 && !graph.keep(input)) freed += graph.size(input);
  }
  return graph.scratch(sink) >= -freed;
}

/// Replaces the subgraph of the nodes in `order` by a path through them in this order. Sizes and scratch are those of
/// Lemma C.3, so the path has the internal profile of the order. The nodes keep their ids. Only the first and the last
/// node of the path may be kept.
inline Graph linearized(const Graph& graph, const Order& order) {
  const NodeSet set = set_of(order);
  Bytes held = reference::internal_profile(graph, set, order);
  if (graph.keep(order.front())) {  // the source is always in memory, so its size does not count on the path
    for (std::int64_t& bytes : held) bytes -= graph.size(order.front());
  }
  GraphBuilder builder(graph);
  for (std::size_t i = 0; i < order.size(); ++i) {
    Node& node = builder.node(order[i]);
    node.inplace = {};
    if (i == 0) continue;  // the source keeps its inputs, its size and its scratch
    node.size = held[2 * i];
    node.scratch = held[2 * i - 1] - held[2 * i] - held[2 * i - 2];
    std::vector<OutputRef> inputs{order[i - 1]};
    for (const OutputRef input : node.inputs) {
      if (!contains(set, input.node)) inputs.push_back(input);
    }
    node.inputs = inputs;
  }
  return builder.build();
}

// The following functions try all topological orders, so their time is proportional to the number of orders.

inline std::int64_t least_peak_over_orders(const OrderModel& model) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for_each_topological_order(model, [&](const Order& order) {
    const Bytes bytes = profile_of(model, order);
    least = std::min(least, *std::max_element(bytes.begin(), bytes.end()));
  });
  return least;
}

/// Returns the indices of the profiles that dominate all profiles. Let d be such a profile, if there is one. When the
/// first loop reaches d, `best` becomes d. Afterwards, only a profile that dominates d can replace it. Such a profile
/// also dominates all profiles, because dominance is transitive (Lemma 2.7). So `best` dominates all profiles after the
/// first loop.
inline std::vector<std::size_t> dominant_among(const std::vector<Bytes>& profiles) {
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

template <class ProfileOf>
std::vector<Order> dominant_among(const std::vector<Order>& orders, const ProfileOf& profile_of_order) {
  std::vector<Bytes> profiles;
  for (const Order& order : orders) profiles.push_back(profile_of_order(order));
  std::vector<Order> dominant;
  for (const std::size_t i : dominant_among(profiles)) dominant.push_back(orders[i]);
  return dominant;
}

/// Returns all dominant orders, i.e. the orders whose profile dominates the profile of every order.
inline std::vector<Order> dominant_orders(const OrderModel& model) {
  return dominant_among(topological_orders(model), [&](const Order& order) { return profile_of(model, order); });
}

/// Returns the orders of an isolated subgraph whose internal profile dominates the internal profile of every order.
inline std::vector<Order> internally_dominant_orders(const Graph& graph, NodeSet set) {
  return dominant_among(topological_orders(graph, set),
                        [&](const Order& order) { return reference::internal_profile(graph, set, order); });
}

/// Returns whether profile `a` dominates the profile of every path through the lattice, without enumerating the paths.
///
/// By Definition 2.4, `a` does not dominate a profile `b` if some place i of `a` has no counterpart in `b`. Let P0 and
/// V0 be the highest and the lowest value of `a` up to i, and P1 and V1 the highest and the lowest value from i on. A
/// place j of `b` is a counterpart if four conditions hold: b reaches P0 at or before j; b is never below V0 until j; b
/// reaches P1 at or after j; and b is never below V1 from j on. The first and the last condition hold from some place
/// on, and the second and the third up to some place. So no counterpart exists exactly if
///   (1) b stays below P0 until it is below V0, or to its end; or
///   (2) b stays below P0 up to a place, and below P1 after it; or
///   (3) b is below V0 somewhere, and there or later below V1; or
///   (4) b is below P1 to its end, from its beginning or from a place where it is below V1.
/// Each case asks only whether a certain path exists, which is a question of reachability in the lattice.
inline bool dominates_all(const Bytes& a, const CutLattice& lattice) {
  using Extremes = std::array<std::int64_t, 4>;
  std::set<Extremes> places;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto here = a.begin() + static_cast<std::ptrdiff_t>(i);
    places.insert({*std::max_element(a.begin(), here + 1), *std::min_element(a.begin(), here + 1),
                   *std::max_element(here, a.end()), *std::min_element(here, a.end())});
  }
  const std::size_t cuts = lattice.cuts.size(), moves = lattice.moves.size();
  std::vector<char> low_cut(cuts), low_move(moves);      // reached from the beginning with all values below P0
  std::vector<char> done_cut(cuts), done_move(moves);    // reaches the end with all values below P1
  std::vector<char> after_cut(cuts), after_move(moves);  // some value here or before is below V0
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

/// Returns an order whose profile is not dominated by the profile `a`, by trying all orders. Returns an empty order if
/// there is no such order, or if there are more than 100,000 orders.
inline Order find_undominated(std::span<const std::int64_t> a, const OrderModel& model) {
  if (topological_order_count(model) > 100'000) return {};
  for (const Order& order : topological_orders(model)) {
    if (!dominates_by_pointers(a, profile_of(model, order))) return order;
  }
  return {};
}

/// Returns the lattice whose paths have the internal profiles (Definition 5.2) of all orders of the graph. The graph
/// must have one source and one sink, which must be different nodes.
inline CutLattice internal_lattice(const Graph& graph) {
  const NodeSet all = first(graph.node_count());
  const auto [source, sink] = terminals(graph, all).value();
  return cut_lattice(OrderModel(graph, all, sink), bit(source), all);
}

}  // namespace cairn::core::reference
