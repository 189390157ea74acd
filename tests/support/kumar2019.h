#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

/// Kumar, Purohit, Svitkina, Vee and Wang, "Efficient Rematerialization for Deep Networks" (NeurIPS 2019) with its
/// supplement, written out literally and slowly from the text. This is the reference for solvers/decomposition,
/// tw_remat and pw_remat, and shares no code with them. Of a graph it reads nodes, inputs, sizes and costs: s(u) and
/// L(u). Scratch, in-place and kept outputs are not in the paper. Where the printed text does not hold, the function
/// says so, and tests/solvers/remat/kumar2019_definitions_test.cpp has the counterexample.
namespace cairn::tests::kumar2019 {

using core::Graph;
using core::NodeId;
using Nodes = std::set<NodeId>;
using Sequence = std::vector<NodeId>;
using Bags = std::vector<Nodes>;

inline Nodes both(Nodes a, const Nodes& b) {
  a.insert(b.begin(), b.end());
  return a;
}
inline Nodes common(const Nodes& a, const Nodes& b) {
  Nodes result;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(result, result.end()));
  return result;
}
inline Nodes less(const Nodes& a, const Nodes& b) {
  Nodes result;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(result, result.end()));
  return result;
}
inline Nodes all_of(const Bags& bags) {
  Nodes result;
  for (const Nodes& bag : bags) result.insert(bag.begin(), bag.end());
  return result;
}
inline Nodes all_of(const Graph& graph) {
  Nodes result;
  for (NodeId v = 0; v < graph.node_count(); ++v) result.insert(v);
  return result;
}
inline Nodes in(const Graph& graph, NodeId v) { return {graph.predecessors(v).begin(), graph.predecessors(v).end()}; }
inline std::int64_t size_of(const Graph& graph, const Nodes& nodes) {
  std::int64_t bytes = 0;
  for (const NodeId v : nodes) bytes += graph.size(v);
  return bytes;
}
inline void extend(Sequence& sequence, const Sequence& by) { sequence.insert(sequence.end(), by.begin(), by.end()); }

// --- Section 2.1: schedules and their memory; Section A.3: the same for a known set W.

/// prev(u, j): the latest step before j that runs u; -1 where there is none.
inline std::int64_t prev(const Sequence& steps, NodeId u, std::int64_t j) {
  while (--j >= 0 && steps[j] != u) {
  }
  return j;
}

/// U_i: what must be in memory at step i. An input that never runs before j (an input of a known node that runs again)
/// is not held for j: the text leaves that open.
inline Nodes held_at(const Graph& graph, const Sequence& steps, std::int64_t i) {
  Nodes held = both({steps[i]}, in(graph, steps[i]));
  for (std::int64_t j = i + 1; j < static_cast<std::int64_t>(steps.size()); ++j) {
    for (const NodeId u : graph.predecessors(steps[j])) {
      const std::int64_t before = prev(steps, u, j);
      if (before >= 0 && before <= i) held.insert(u);
    }
  }
  return held;
}

/// Definition 12.
inline bool valid(const Graph& graph, const Sequence& sigma, const Nodes& known = {}) {
  Nodes ran = known;
  for (const NodeId u : sigma) {
    if (!known.contains(u) && !less(in(graph, u), ran).empty()) return false;
    ran.insert(u);
  }
  return true;
}

/// M_W(sigma): W runs first, and its steps do not count. `free_of_charge` is subtracted from each U_i.
inline std::int64_t memory(const Graph& graph, const Sequence& sigma, const Nodes& known = {},
                           const Nodes& free_of_charge = {}) {
  Sequence steps(known.begin(), known.end());
  extend(steps, sigma);
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(steps.size()); ++i) {
    if (known.contains(steps[i])) continue;
    most = std::max(most, size_of(graph, less(held_at(graph, steps, i), free_of_charge)));
  }
  return most;
}

/// L(sigma).
inline std::int64_t length(const Graph& graph, const Sequence& sigma) {
  std::int64_t sum = 0;
  for (const NodeId u : sigma) sum += graph.cost(u);
  return sum;
}

/// M_in and M_max.
inline std::int64_t largest_inputs(const Graph& graph) {
  std::int64_t most = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) most = std::max(most, size_of(graph, in(graph, v)));
  return most;
}
inline std::int64_t largest_size(const Graph& graph) {
  std::int64_t most = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) most = std::max(most, graph.size(v));
  return most;
}

/// The nodes that every schedule must contain even if nobody reads them: the paper's f, where there is one.
inline Nodes outputs(const Graph& graph) {
  Nodes result;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.required(v)) result.insert(v);
  }
  return result;
}

/// The topological order of all nodes that takes the least index first.
inline Sequence topological(const Graph& graph) {
  Sequence order;
  while (static_cast<NodeId>(order.size()) < graph.node_count()) {
    const Nodes done(order.begin(), order.end());
    NodeId next = 0;
    while (done.contains(next) || !less(in(graph, next), done).empty()) ++next;
    order.push_back(next);
  }
  return order;
}

/// S and all nodes of `within` from which a path in `within` leads to S.
inline Nodes needed_for(const Graph& graph, const Nodes& outputs, const Nodes& within) {
  Nodes needed = outputs;
  for (std::size_t before = 0; before != needed.size();) {
    before = needed.size();
    for (const NodeId v : Nodes(needed)) needed = both(needed, common(in(graph, v), within));
  }
  return needed;
}

// --- Section 2.2: the undirected graph and its decompositions.

using Edge = std::pair<NodeId, NodeId>;

/// Nodes and directed edges, for graphs that the paper derives from the computation graph.
struct Digraph {
  Nodes nodes;
  std::set<Edge> edges;
};

inline Digraph digraph(const Graph& graph) {
  Digraph result{all_of(graph), {}};
  for (const NodeId v : result.nodes) {
    for (const NodeId u : graph.predecessors(v)) result.edges.insert({u, v});
  }
  return result;
}

inline std::map<NodeId, Nodes> neighbours(const Digraph& graph) {
  std::map<NodeId, Nodes> result;
  for (const NodeId v : graph.nodes) result[v];
  for (const auto& [u, v] : graph.edges) {
    result[u].insert(v);
    result[v].insert(u);
  }
  return result;
}

/// (X, T): bags, and the tree's edges between them.
struct Decomposition {
  Bags bags;
  std::vector<std::pair<std::size_t, std::size_t>> tree;
};

inline int width(const Bags& bags) {
  std::size_t largest = 0;
  for (const Nodes& bag : bags) largest = std::max(largest, bag.size());
  return static_cast<int>(largest) - 1;
}

/// The connected components of the bags `among`, each ascending.
inline std::vector<std::vector<std::size_t>> components(const Decomposition& decomposition,
                                                        const std::set<std::size_t>& among) {
  std::vector<std::vector<std::size_t>> result;
  std::set<std::size_t> left = among;
  while (!left.empty()) {
    std::set<std::size_t> part{*left.begin()};
    for (std::size_t before = 0; before != part.size();) {
      before = part.size();
      for (const auto& [a, b] : decomposition.tree) {
        if (left.contains(a) && left.contains(b) && (part.contains(a) || part.contains(b))) part.insert({a, b});
      }
    }
    for (const std::size_t bag : part) left.erase(bag);
    result.emplace_back(part.begin(), part.end());
  }
  return result;
}

inline bool is_tree_decomposition(const Digraph& graph, const Decomposition& decomposition) {
  const Bags& bags = decomposition.bags;
  std::set<std::size_t> every;
  for (std::size_t i = 0; i < bags.size(); ++i) every.insert(i);
  if (components(decomposition, every).size() > 1 ||
      decomposition.tree.size() + 1 != std::max<std::size_t>(bags.size(), 1)) {
    return false;
  }
  if (all_of(bags) != graph.nodes) return false;  // (i)
  const auto together = [&](const Edge& edge) {
    return std::any_of(bags.begin(), bags.end(),
                       [&](const Nodes& bag) { return bag.contains(edge.first) && bag.contains(edge.second); });
  };
  if (!std::all_of(graph.edges.begin(), graph.edges.end(), together)) return false;  // (ii)
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](NodeId v) {         // (iii)
    std::set<std::size_t> holding;
    for (std::size_t i = 0; i < bags.size(); ++i) {
      if (bags[i].contains(v)) holding.insert(i);
    }
    return components(decomposition, holding).size() == 1;
  });
}

/// A path decomposition of these bags.
inline Decomposition path(const Bags& bags) {
  Decomposition result{bags, {}};
  for (std::size_t i = 1; i < bags.size(); ++i) result.tree.push_back({i - 1, i});
  return result;
}
inline bool is_path_decomposition(const Digraph& graph, const Bags& bags) {
  return is_tree_decomposition(graph, path(bags));
}

/// Eliminates node by node. A bag is the node and its neighbours, which become a clique; its parent is the bag of the
/// neighbour that is eliminated next. The trees of a forest are joined.
inline Decomposition eliminate(const Digraph& graph, const Sequence& order) {
  std::map<NodeId, Nodes> adjacent = neighbours(graph);
  std::map<NodeId, std::size_t> place;
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  Decomposition result;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Nodes around = adjacent[order[i]];
    result.bags.push_back(both(around, {order[i]}));
    std::size_t parent = i + 1;
    if (!around.empty()) {
      parent = order.size();
      for (const NodeId u : around) parent = std::min(parent, place[u]);
    }
    if (parent < order.size()) result.tree.push_back({i, parent});
    for (const NodeId u : around) {
      adjacent[u] = less(both(adjacent[u], around), {u, order[i]});
    }
  }
  return result;
}

/// The elimination order that always takes the node of least score(neighbours of all, node), ties by index.
template <class Score>
Sequence greedy_order(const Digraph& graph, const Score& score) {
  std::map<NodeId, Nodes> adjacent = neighbours(graph);
  Sequence order;
  while (!adjacent.empty()) {
    NodeId best = adjacent.begin()->first;
    for (const auto& [v, around] : adjacent) {
      if (score(adjacent, v) < score(adjacent, best)) best = v;
    }
    const Nodes around = adjacent[best];
    adjacent.erase(best);
    for (const NodeId u : around) adjacent[u] = less(both(adjacent[u], around), {u, best});
    order.push_back(best);
  }
  return order;
}
inline std::size_t fill_in(const std::map<NodeId, Nodes>& adjacent, NodeId v) {
  std::size_t missing = 0;
  for (const NodeId u : adjacent.at(v)) missing += less(adjacent.at(v), adjacent.at(u)).size() - 1;
  return missing / 2;
}
inline Sequence min_fill(const Digraph& graph) { return greedy_order(graph, fill_in); }
inline Sequence min_degree(const Digraph& graph) {
  return greedy_order(graph, [](const auto& adjacent, NodeId v) { return adjacent.at(v).size(); });
}

/// Contracts a node of least degree into a neighbour of least degree until nothing is left. The largest of these
/// degrees is a lower bound on the treewidth.
inline int minor_min_width(const Digraph& graph) {
  std::map<NodeId, Nodes> adjacent = neighbours(graph);
  std::size_t bound = 0;
  const auto least = [&](const Nodes& among) {
    return *std::min_element(among.begin(), among.end(),
                             [&](NodeId a, NodeId b) { return adjacent[a].size() < adjacent[b].size(); });
  };
  for (Nodes left = graph.nodes; !left.empty();) {
    const NodeId v = least(left);
    const Nodes around = adjacent[v];
    bound = std::max(bound, around.size());
    if (!around.empty()) {
      const NodeId into = least(around);
      adjacent[into] = less(both(adjacent[into], around), {into});
      for (const NodeId u : around) {
        if (u != into) adjacent[u].insert(into);
      }
    }
    for (const NodeId u : around) adjacent[u].erase(v);
    left.erase(v);
  }
  return static_cast<int>(bound);
}

/// Dynamic programming over the sets S of nodes that come first in an order. Finds the order with the least maximum of
/// cost(adjacent, S without v, v), v being the last of S. O(2^n n) costs: n <= 12.
template <class Cost>
std::pair<int, Sequence> best_order(const Digraph& graph, const Cost& cost) {
  const Sequence ids(graph.nodes.begin(), graph.nodes.end());
  const int n = static_cast<int>(ids.size());
  std::vector<std::uint32_t> adjacent(n, 0);
  for (const auto& [u, v] : graph.edges) {
    const auto a = std::lower_bound(ids.begin(), ids.end(), u) - ids.begin();
    const auto b = std::lower_bound(ids.begin(), ids.end(), v) - ids.begin();
    adjacent[a] |= 1U << b;
    adjacent[b] |= 1U << a;
  }
  std::vector<std::pair<int, int>> best(std::size_t{1} << n, {n, -1});  // least cost, last node of the set
  best[0] = {-1, -1};
  for (std::uint32_t set = 1; set < best.size(); ++set) {
    for (int v = 0; v < n; ++v) {
      if ((set >> v & 1U) == 0) continue;
      const std::uint32_t before = set ^ 1U << v;
      best[set] = std::min(best[set], {std::max(best[before].first, cost(adjacent, before, v)), v});
    }
  }
  Sequence order;
  for (std::uint32_t set = static_cast<std::uint32_t>(best.size()) - 1; set != 0; set ^= 1U << best[set].second) {
    order.push_back(ids[best[set].second]);
  }
  std::reverse(order.begin(), order.end());
  return {best.back().first, order};
}

/// tw(G), and an elimination order of that width: the neighbours of v are what it reaches through S.
inline std::pair<int, Sequence> treewidth(const Digraph& graph) {
  return best_order(graph, [](const std::vector<std::uint32_t>& adjacent, std::uint32_t through, int v) {
    std::uint32_t seen = 1U << v;
    for (std::uint32_t frontier = seen; frontier != 0;) {
      std::uint32_t next = 0;
      for (std::size_t u = 0; u < adjacent.size(); ++u) next |= (frontier >> u & 1U) != 0 ? adjacent[u] : 0;
      next &= ~seen;
      seen |= next;
      frontier = next & through;
    }
    return std::popcount(seen & ~through) - 1;
  });
}

/// pw(G), and an order of that vertex separation: the bag of v is v and the earlier nodes with neighbours at v or
/// later.
inline std::pair<int, Sequence> pathwidth(const Digraph& graph) {
  return best_order(graph, [](const std::vector<std::uint32_t>& adjacent, std::uint32_t before, int) {
    int separation = 0;
    for (std::size_t u = 0; u < adjacent.size(); ++u)
      separation += (before >> u & 1U) != 0 && (adjacent[u] & ~before) != 0;
    return separation;
  });
}
inline Bags path_decomposition(const Digraph& graph, const Sequence& order) {
  const std::map<NodeId, Nodes> adjacent = neighbours(graph);
  Nodes left = graph.nodes, open;
  Bags bags;
  for (const NodeId v : order) {
    open.insert(v);
    bags.push_back(open);
    left.erase(v);
    for (const NodeId u : Nodes(open)) {
      if (common(adjacent.at(u), left).empty()) open.erase(u);
    }
  }
  return bags;
}

// --- Section 3: rematerialization by tree decomposition.

/// Lemma 1: merges adjacent bags of which one contains the other, until there are none.
inline Decomposition lemma1(Decomposition decomposition) {
  for (std::size_t e = 0; e < decomposition.tree.size();) {
    auto [keep, drop] = decomposition.tree[e];
    if (decomposition.bags[keep].size() < decomposition.bags[drop].size()) std::swap(keep, drop);
    if (!less(decomposition.bags[drop], decomposition.bags[keep]).empty()) {
      ++e;
      continue;
    }
    decomposition.tree.erase(decomposition.tree.begin() + static_cast<std::ptrdiff_t>(e));
    decomposition.bags.erase(decomposition.bags.begin() + static_cast<std::ptrdiff_t>(drop));
    const auto renamed = [keep = keep, drop = drop](std::size_t bag) {
      const std::size_t to = bag == drop ? keep : bag;
      return to > drop ? to - 1 : to;
    };
    for (auto& [a, b] : decomposition.tree) {
      a = renamed(a);
      b = renamed(b);
    }
    e = 0;
  }
  return decomposition;
}

/// The components that remain when a bag is removed, without that bag's nodes.
inline std::vector<Decomposition> without(const Decomposition& decomposition, std::size_t separator) {
  std::set<std::size_t> others;
  for (std::size_t i = 0; i < decomposition.bags.size(); ++i) others.insert(i);
  others.erase(separator);
  std::vector<Decomposition> result;
  for (const std::vector<std::size_t>& part : components(decomposition, others)) {
    Decomposition component;
    for (const std::size_t bag : part) {
      component.bags.push_back(less(decomposition.bags[bag], decomposition.bags[separator]));
    }
    for (const auto& [a, b] : decomposition.tree) {
      const auto at_a = std::lower_bound(part.begin(), part.end(), a);
      const auto at_b = std::lower_bound(part.begin(), part.end(), b);
      if (at_a == part.end() || *at_a != a || at_b == part.end() || *at_b != b) continue;
      component.tree.push_back(
          {static_cast<std::size_t>(at_a - part.begin()), static_cast<std::size_t>(at_b - part.begin())});
    }
    result.push_back(std::move(component));
  }
  return result;
}

inline bool is_balanced_separator(const Decomposition& decomposition, std::size_t bag) {
  for (const Decomposition& component : without(decomposition, bag)) {
    if (2 * component.bags.size() > decomposition.bags.size()) return false;
  }
  return true;
}

/// Chooses the bag of a decomposition that is its separator.
using ChooseSeparator = std::function<std::size_t(const Decomposition&)>;

/// Lemma 3: the first bag whose removal leaves components of at most half the bags.
inline std::size_t lemma3(const Decomposition& decomposition) {
  std::size_t bag = 0;
  while (!is_balanced_separator(decomposition, bag)) ++bag;  // exists by Theorem 2
  return bag;
}

/// A step of an annotated schedule: a node runs and stays in memory, or is freed.
struct Step {
  NodeId node = core::kNoNode;
  bool free = false;
};

/// The errors of Algorithm 1 as printed, for the counterexamples.
struct AsPrinted {
  bool whole_separator = false;  ///< schedules all of X*, also what S does not need, before its inputs are there
  bool free_elsewhere = false;   ///< frees all inputs of v outside X*, also those in the callers' separators
};

/// Algorithm 1, without Lemma 1: appends the annotated schedule for `outputs`, S, among `nodes`, V'. With fewer than
/// `stop` bags, as in TWRemat(k), or with none, the needed nodes run in topological order. Only nodes that S needs are
/// scheduled, as in the base case of Lemma 4's proof: others may have inputs that have not run. Of the inputs of a
/// separator's node, only those in the components are freed.
inline void algorithm1(const Graph& graph, const Nodes& nodes, const Decomposition& decomposition, const Nodes& outputs,
                       std::size_t stop, const ChooseSeparator& choose, AsPrinted as_printed,
                       std::vector<Step>& steps) {
  const Nodes needed = as_printed.whole_separator ? nodes : needed_for(graph, outputs, nodes);
  const bool last = decomposition.bags.size() < std::max<std::size_t>(stop, 1);
  const std::size_t bag = last ? 0 : choose(decomposition);
  const Nodes separator = last ? nodes : decomposition.bags[bag];
  const std::vector<Decomposition> parts = last ? std::vector<Decomposition>() : without(decomposition, bag);
  const auto call = [&](const Decomposition& part, const Nodes& of) {
    const Nodes within = common(nodes, all_of(part.bags));
    algorithm1(graph, within, part, common(of, within), stop, choose, as_printed, steps);
  };
  for (const NodeId v : topological(graph)) {
    if (!separator.contains(v) || !needed.contains(v)) continue;
    for (const Decomposition& part : parts) call(part, in(graph, v));
    steps.push_back({v});
    const Nodes elsewhere = less(in(graph, v), separator);
    for (const NodeId u : as_printed.free_elsewhere ? elsewhere : common(elsewhere, nodes)) steps.push_back({u, true});
  }
  for (const Decomposition& part : parts) call(part, less(outputs, separator));
  for (const NodeId v : less(common(separator, needed), outputs)) steps.push_back({v, true});
}

/// TWRemat(k) for all outputs of the graph.
inline std::vector<Step> tw_remat(const Graph& graph, const Decomposition& decomposition, std::size_t k = 1,
                                  const ChooseSeparator& choose = lemma3, AsPrinted as_printed = {}) {
  std::vector<Step> steps;
  algorithm1(graph, all_of(graph), decomposition, outputs(graph), k, choose, as_printed, steps);
  return steps;
}

inline Sequence without_annotations(const std::vector<Step>& steps) {
  Sequence sigma;
  for (const Step& step : steps) {
    if (!step.free) sigma.push_back(step.node);
  }
  return sigma;
}

/// The most memory that nodes take which ran and were not freed. None where a node runs without all its inputs in
/// memory, something is freed that is not there, or anything but `left_at_end` is left at the end.
inline std::optional<std::int64_t> annotated_memory(const Graph& graph, const std::vector<Step>& steps,
                                                    const Nodes& left_at_end) {
  Nodes content;
  std::int64_t most = 0;
  for (const Step& step : steps) {
    if (step.free) {
      if (content.erase(step.node) == 0) return std::nullopt;
    } else {
      if (!less(in(graph, step.node), content).empty()) return std::nullopt;
      content.insert(step.node);
      most = std::max(most, size_of(graph, content));
    }
  }
  if (content != left_at_end) return std::nullopt;
  return most;
}

/// Theorem 5 with the constants of its proof, for a decomposition that Algorithm 1 gets: each level of the recursion
/// halves the bags, so there are at most floor(log2 |X|) + 1 levels.
struct Theorem5 {
  int levels = 0;
  std::int64_t length = 0;  ///< each level but the last makes at most width + 2 calls: T_onepass (w + 2)^(levels - 1)
  std::int64_t memory = 0;  ///< each level holds a separator and one node's inputs; the outputs are the caller's
};
inline Theorem5 theorem5(const Graph& graph, const Decomposition& decomposition) {
  const std::int64_t w = width(decomposition.bags);
  Theorem5 bound;
  bound.levels = static_cast<int>(std::bit_width(decomposition.bags.size()));
  for (NodeId v = 0; v < graph.node_count(); ++v) bound.length += graph.cost(v);
  for (int level = 1; level < bound.levels; ++level) bound.length *= w + 2;
  bound.memory =
      bound.levels * (largest_inputs(graph) + (w + 1) * largest_size(graph)) + size_of(graph, outputs(graph));
  return bound;
}

// --- Sections A.1 and A.2: path decompositions and spines. Bags count from 0.

/// INTERVAL(u): the first and the last bag that contains u.
inline std::pair<std::int64_t, std::int64_t> interval(const Bags& bags, NodeId u) {
  std::pair<std::int64_t, std::int64_t> result{-1, -1};
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(bags.size()); ++i) {
    if (!bags[i].contains(u)) continue;
    if (result.first < 0) result.first = i;
    result.second = i;
  }
  return result;
}

/// A directed path that visits every node exactly once.
inline bool is_spine(const Digraph& graph, const Sequence& spine) {
  if (spine.size() != graph.nodes.size() || Nodes(spine.begin(), spine.end()) != graph.nodes) return false;
  for (std::size_t i = 1; i < spine.size(); ++i) {
    if (!graph.edges.contains({spine[i - 1], spine[i]})) return false;
  }
  return true;
}

/// Algorithm 2's result: the graph with a spine, the bags, and the spine in its order.
struct SpineAddition {
  Digraph graph;
  Bags bags;
  Sequence spine;
};

/// The interval graph of a path decomposition: all nodes of a bag are adjacent. Each edge goes to the later node in
/// `order`, a topological order of the graph.
inline Digraph interval_graph(const Bags& bags, const Sequence& order) {
  Digraph result{all_of(bags), {}};
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      const Nodes pair{order[i], order[j]};
      if (std::any_of(bags.begin(), bags.end(), [&](const Nodes& bag) { return less(pair, bag).empty(); })) {
        result.edges.insert({order[i], order[j]});
      }
    }
  }
  return result;
}

/// Algorithm 2, ties of right endpoints by index. On a graph whose bags are no cliques the decomposition may miss an
/// edge that was added: ProcessNode(u) need not return a node whose interval holds r_u, as printed, where the last v_i
/// ends right of r_u. On the interval graph what starts right of v_i and left of that node comes after v_i, and below
/// it in the recursion.
inline SpineAddition algorithm2(Digraph graph, const Bags& bags) {
  struct Process {
    Digraph& graph;
    std::map<NodeId, std::pair<std::int64_t, std::int64_t>> intervals;
    Nodes explored = {};
    Sequence order = {};

    void grow(NodeId x, std::int64_t bag) { intervals[x].second = std::max(intervals[x].second, bag); }
    NodeId node(NodeId u) {
      explored.insert(u);
      order.push_back(u);
      NodeId x = u;
      Sequence next;
      for (const NodeId v : graph.nodes) {
        const bool ready = std::all_of(graph.edges.begin(), graph.edges.end(), [&](const Edge& edge) {
          return edge.second != v || explored.contains(edge.first);
        });
        if (graph.edges.contains({u, v}) && ready) next.push_back(v);
      }
      std::stable_sort(next.begin(), next.end(),
                       [&](NodeId a, NodeId b) { return intervals[a].second < intervals[b].second; });
      for (std::size_t i = 0; i < next.size(); ++i) {
        x = node(next[i]);
        if (i + 1 < next.size()) {
          grow(x, intervals[next[i + 1]].first);
          graph.edges.insert({x, next[i + 1]});
        } else {
          grow(x, intervals[u].second);
        }
      }
      return x;
    }
  };
  const NodeId root = graph.nodes.empty() ? 0 : *graph.nodes.rbegin() + 1;
  Process process{graph, {}};
  for (const NodeId v : graph.nodes) {
    process.intervals[v] = interval(bags, v);
    graph.edges.insert({root, v});
  }
  process.intervals[root] = {0, static_cast<std::int64_t>(bags.size()) - 1};
  graph.nodes.insert(root);
  process.node(root);

  SpineAddition result{graph, Bags(bags.size()), {process.order.begin() + 1, process.order.end()}};
  result.graph.nodes.erase(root);
  std::erase_if(result.graph.edges, [&](const Edge& edge) { return edge.first == root; });
  for (const NodeId v : result.graph.nodes) {
    for (std::int64_t i = process.intervals[v].first; i <= process.intervals[v].second; ++i) result.bags[i].insert(v);
  }
  return result;
}

// From here on, nodes are numbered along the spine, or in the topological order that the text assumes: u precedes v
// where u < v.

inline bool has_long_spine(const Digraph& graph) {
  return is_spine(graph, Sequence(graph.nodes.begin(), graph.nodes.end()));
}

/// last(X); X must not be empty.
inline NodeId last(const Nodes& bag) { return *bag.rbegin(); }

/// Whether Lemma 9 holds for all bags and the nodes in them.
inline bool lemma9(const Bags& bags) {
  for (std::size_t k = 0; k < bags.size(); ++k) {
    for (std::size_t l = k; l < bags.size(); ++l) {
      for (std::size_t between = k; between <= l; ++between) {
        for (const NodeId a : bags[k]) {
          for (const NodeId b : bags[l]) {
            const auto found = bags[between].lower_bound(std::min(a, b));
            if (found == bags[between].end() || *found > std::max(a, b)) return false;
          }
        }
      }
    }
  }
  return true;
}

/// Lemma 10: last() does not fall before a bag that contains the final node, and does not rise after it.
inline bool lemma10(const Bags& bags, std::size_t with_final) {
  for (std::size_t i = 1; i < bags.size(); ++i) {
    if (i <= with_final && last(bags[i - 1]) > last(bags[i])) return false;
    if (i > with_final && last(bags[i - 1]) < last(bags[i])) return false;
  }
  return true;
}

/// Lemma 11 for bags X_k and X_l on one side of a bag with the final node, X_l being farther from that, in a
/// decomposition with bags of at most p nodes: G'' has a long spine, and the restricted bags decompose it with p - 1
/// nodes each.
inline bool lemma11(const Digraph& graph, const Bags& bags, std::size_t k, std::size_t l) {
  Bags restricted;
  for (std::size_t i = std::min(k, l); i <= std::max(k, l); ++i) {
    restricted.emplace_back(bags[i].begin(), bags[i].lower_bound(last(bags[l])));
  }
  Digraph part{all_of(restricted), {}};
  for (const auto& [u, v] : graph.edges) {
    if (part.nodes.contains(u) && part.nodes.contains(v)) part.edges.insert({u, v});
  }
  for (const Nodes& bag : {restricted.front(), restricted.back()}) {
    for (const NodeId u : bag) {
      for (const NodeId v : bag) {
        if (u < v) part.edges.insert({u, v});
      }
    }
  }
  return has_long_spine(part) && is_path_decomposition(part, restricted) && width(restricted) <= width(bags) - 1;
}

// --- Section A.3: interleaved schedules.

/// Definition 15: tuples <sigma, x>, stored as (x, sigma), so that they are ordered by x, then lexicographically. X is
/// the set of their x.
using Interleaved = std::set<std::pair<NodeId, Sequence>>;

inline Nodes on(const Interleaved& tuples) {
  Nodes result;
  for (const auto& tuple : tuples) result.insert(tuple.first);
  return result;
}
inline Nodes before(const Nodes& nodes, NodeId x) { return {nodes.begin(), nodes.lower_bound(x)}; }
inline Sequence then(Sequence sigma, NodeId x) {
  sigma.push_back(x);
  return sigma;
}
inline Interleaved both(Interleaved a, const Interleaved& b) {
  a.insert(b.begin(), b.end());
  return a;
}

inline bool valid(const Graph& graph, const Interleaved& tuples, const Nodes& known) {
  const Nodes nodes = on(tuples);
  return std::all_of(tuples.begin(), tuples.end(), [&](const auto& tuple) {
    return valid(graph, then(tuple.second, tuple.first), both(known, before(nodes, tuple.first)));
  });
}

/// How known nodes are paid. As printed, they are paid twice: M_W(sigma o x) contains the nodes of W and of X before x
/// that are read later, and s(W and X before x) is added to it. Paid once, they are left out of M_W.
enum class KnownNodes { as_printed, paid_once };

/// M_W(I).
inline std::int64_t memory(const Graph& graph, const Interleaved& tuples, const Nodes& known,
                           KnownNodes pay = KnownNodes::as_printed) {
  const Nodes nodes = on(tuples);
  std::int64_t most = 0;
  for (const NodeId x : nodes) {
    const Nodes now_known = both(known, before(nodes, x));
    std::int64_t sum = size_of(graph, now_known);
    for (const auto& [target, sigma] : tuples) {
      if (target != x) continue;
      sum += memory(graph, then(sigma, x), now_known, pay == KnownNodes::paid_once ? now_known : Nodes{});
    }
    most = std::max(most, sum);
  }
  return most;
}

/// L(I).
inline std::int64_t length(const Graph& graph, const Interleaved& tuples) {
  std::int64_t sum = 0;
  for (const auto& [x, sigma] : tuples) sum += length(graph, then(sigma, x));
  return sum;
}

inline Interleaved merge(const Interleaved& tuples) {
  std::map<NodeId, Sequence> merged;
  for (const auto& [x, sigma] : tuples) extend(merged[x], sigma);
  return {merged.begin(), merged.end()};
}

inline Sequence flatten(const Interleaved& tuples) {
  Sequence result;
  for (const auto& [x, sigma] : merge(tuples)) extend(result, then(sigma, x));
  return result;
}

/// Condense(X', I): drops what comes after the last node of X'.
inline Interleaved condense(const Nodes& onto, const Interleaved& tuples) {
  Interleaved result;
  Sequence tau;
  for (const auto& [x, sigma] : merge(tuples)) {
    extend(tau, sigma);
    if (onto.contains(x)) {
      result.insert({x, tau});
      tau.clear();
    } else {
      tau.push_back(x);
    }
  }
  return result;
}

// --- Section A.4: rematerialization by path decomposition.

/// Algorithm 3. As printed it runs known nodes again, and nodes of which it takes the inputs for known without need:
/// its schedules need not be valid. Settled, known nodes are not run, so
/// - PWRemat of a node that is known or not in its bags is empty;
/// - the tuple of u_i is <sigma_1 o .. o sigma_i, u_i>, as u_1, .., u_{i-1} are known to it; sigma_q is in it also
/// where
///   u_q is in W, for what u_i reads of it; u_i in W gets no tuple;
/// - InterleavedSchedule for what is lower gets X, of which X' is known.
/// The bag of u is the middle one of INTERVAL(u), the middle bag of b the one at (b + 1) / 2 counted from 1.
class Algorithm3 {
 public:
  explicit Algorithm3(const Graph& graph, bool as_printed = false) : graph_(graph), as_printed_(as_printed) {}

  /// The schedule for the last node of a graph with a long spine.
  Sequence schedule(const Bags& bags) const { return pw_remat(bags, graph_.node_count() - 1, {}); }

 private:
  Sequence pw_remat(const Bags& bags, NodeId u, const Nodes& known) const {
    const Nodes nodes = all_of(bags);
    if (known.contains(u) || !nodes.contains(u)) return as_printed_ ? Sequence{u} : Sequence{};
    if (less(common(in(graph_, u), nodes), known).empty()) return {u};
    Bags cut;
    for (const Nodes& bag : bags) cut.push_back(before(bag, u + 1));
    if (width(cut) <= 1) {
      const Nodes needed = needed_for(graph_, {u}, less(all_of(cut), known));
      return {needed.begin(), needed.end()};
    }
    const auto [first, last_bag] = interval(cut, u);
    const std::int64_t i = (first + last_bag) / 2;
    const Bags left(cut.rend() - i, cut.rend()), right(cut.begin() + i + 1, cut.end());
    const Interleaved joined = both(interleaved(cut[i], left, known), interleaved(cut[i], right, known));
    return flatten(joined);
  }

  Interleaved interleaved(const Nodes& nodes, const Bags& bags, const Nodes& known) const {
    Interleaved result;
    const Nodes wanted = as_printed_ ? nodes : less(nodes, known);
    if (less(nodes, known).empty() || bags.empty()) {
      for (const NodeId x : wanted) result.insert({x, {}});
      return result;
    }
    const auto middle = static_cast<std::ptrdiff_t>((bags.size() - 1) / 2);
    const Nodes& separator = bags[middle];
    const Bags inner(bags.begin(), bags.begin() + middle), outer(bags.begin() + middle + 1, bags.end());
    if (separator.empty()) return interleaved(nodes, inner, known);  // then the outer ones are empty, too: Lemma 9
    const Nodes earlier = before(nodes, last(separator)), both_sides = both(earlier, separator);
    Sequence sigma;
    Nodes passed;
    for (const NodeId u : both_sides) {
      if (u > 0) extend(sigma, pw_remat(inner, u - 1, passed));
      if (as_printed_ || !known.contains(u)) result.insert({u, sigma});
      if (as_printed_) sigma.push_back(u);
      passed.insert(u);
    }
    result = both(result, interleaved(separator, outer, known));
    result = both(result, interleaved(as_printed_ ? less(nodes, earlier) : nodes, inner, both(known, both_sides)));
    return condense(wanted, result);
  }

  const Graph& graph_;
  bool as_printed_;
};

/// Theorem 22 with constants, for the settled algorithm, largest bag p and b bags. The steps are by the proof's
/// recurrence, which the closed form in the text loses constants of: sigma_q is in at most 2p tuples of the two
/// separators. The memory is less than the paper's, in which interleaved schedules add up: one sigma runs at a time,
/// and beside it each level of InterleavedSchedule, on both sides of u's bag, holds at most 2p nodes of its separators
/// and inputs of one node.
class Theorem22 {
 public:
  /// Steps of PWRemat's schedule where each node costs 1.
  double steps(std::int64_t p, std::int64_t b) {
    return p <= 2 ? static_cast<double>(2 * b + 1) : 2 * interleaved_steps(p, b);
  }
  /// Memory in units of M_in + M_max.
  static std::int64_t memory(std::int64_t p, std::int64_t b) {
    if (p <= 2 || b == 0) return 1;
    return memory(p - 1, b / 2) + 2 * std::bit_width(static_cast<std::uint64_t>(b)) * (2 * p + 1) + p + 1;
  }

 private:
  double interleaved_steps(std::int64_t p, std::int64_t b) {
    if (b == 0) return static_cast<double>(p);
    const auto [known, added] = known_.insert({{p, b}, 0});
    if (added) {
      const std::int64_t inner = (b - 1) / 2, outer = b - 1 - inner;
      const double tuples = static_cast<double>(2 * p);
      known->second = tuples * (tuples + 1) / 2 * steps(p - 1, inner) + tuples + interleaved_steps(p, inner) +
                      interleaved_steps(p, outer);
    }
    return known->second;
  }

  std::map<std::pair<std::int64_t, std::int64_t>, double> known_;
};

}  // namespace cairn::tests::kumar2019
