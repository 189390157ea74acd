#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/tests/reference/kumar2019/schedules.h"

/// This file has section 2.2 of Kumar et al. (2019): undirected graphs and their decompositions.
namespace cairn::tests::kumar2019 {

using Edge = std::pair<NodeId, NodeId>;

/// Nodes and directed edges of a graph that the paper derives from the computation graph.
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

/// A tree decomposition (X, T). It has the bags X, and the edges of the tree T as pairs of indices of bags.
struct Decomposition {
  Bags bags;
  std::vector<std::pair<std::size_t, std::size_t>> tree;
};

inline int width(const Bags& bags) {
  std::size_t largest = 0;
  for (const Nodes& bag : bags) largest = std::max(largest, bag.size());
  return static_cast<int>(largest) - 1;
}

/// Returns the connected components that the bags `among` form in the tree, each as an ascending list of indices.
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
  if (all_of(bags) != graph.nodes) return false;  // condition (i): every node is in some bag
  const auto together = [&](const Edge& edge) {
    return std::any_of(bags.begin(), bags.end(),
                       [&](const Nodes& bag) { return bag.contains(edge.first) && bag.contains(edge.second); });
  };
  if (!std::all_of(graph.edges.begin(), graph.edges.end(), together))
    // Condition (ii): the two ends of every edge are together in some bag.
    return false;
  // Condition (iii): the bags of each node are connected.
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](NodeId v) {
    std::set<std::size_t> holding;
    for (std::size_t i = 0; i < bags.size(); ++i) {
      if (bags[i].contains(v)) holding.insert(i);
    }
    return components(decomposition, holding).size() == 1;
  });
}

/// Returns the path decomposition with these bags in this order.
inline Decomposition path(const Bags& bags) {
  Decomposition result{bags, {}};
  for (std::size_t i = 1; i < bags.size(); ++i) result.tree.push_back({i - 1, i});
  return result;
}
inline bool is_path_decomposition(const Digraph& graph, const Bags& bags) {
  return is_tree_decomposition(graph, path(bags));
}

/// Builds a tree decomposition by eliminating the nodes in this order. The bag of a node consists of the node and its
/// remaining neighbours. When a node is eliminated, its neighbours become a clique. The parent of its bag is the bag of
/// that neighbour which is eliminated first. If the graph is not connected, the trees of its components are joined.
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

/// Returns the elimination order that always takes the remaining node v with the least score(adjacent, v), where
/// `adjacent` maps each remaining node to its neighbours. In a tie, it takes the node of lowest index.
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

/// Returns a lower bound on the treewidth. It repeatedly contracts a node of least degree into its neighbour of least
/// degree, until no node is left. The bound is the largest degree that a node had when it was contracted.
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

/// Finds the best order of all n nodes. The value of an order is the maximum over all nodes v of cost(adjacent, S, v),
/// where S is the set of nodes before v. Returns the least value, and an order that has it. The dynamic program over
/// sets S, as bit masks, calls `cost` O(2^n n) times, so n should be at most 12.
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
  std::vector<std::pair<int, int>> best(std::size_t{1} << n, {n, -1});  // least value, and last node of the set
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

/// Returns the treewidth, and an elimination order of this width. If v is eliminated after the nodes S (`through`), its
/// neighbours are the nodes outside of S that v reaches on paths through S.
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

/// Returns the pathwidth, and an order of the nodes that gives a path decomposition of this width. In it, the bag of a
/// node v has v and the earlier nodes that have v or a later node as a neighbour.
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

}  // namespace cairn::tests::kumar2019
