#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "cairn/core/graph.h"
#include "cairn/tests/reference/kumar2019/decompositions.h"
#include "cairn/tests/reference/kumar2019/schedules.h"

/// This file has sections A.1 and A.2 of Kumar et al. (2019): path decompositions and spines. Bags are counted from 0.
namespace cairn::tests::kumar2019 {

/// Returns INTERVAL(u): the first and the last bag that contain u.
inline std::pair<std::int64_t, std::int64_t> interval(const Bags& bags, NodeId u) {
  std::pair<std::int64_t, std::int64_t> result{-1, -1};
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(bags.size()); ++i) {
    if (!bags[i].contains(u)) continue;
    if (result.first < 0) result.first = i;
    result.second = i;
  }
  return result;
}

/// Returns whether `spine` is a directed path that visits every node exactly once.
inline bool is_spine(const Digraph& graph, const Sequence& spine) {
  if (spine.size() != graph.nodes.size() || Nodes(spine.begin(), spine.end()) != graph.nodes) return false;
  for (std::size_t i = 1; i < spine.size(); ++i) {
    if (!graph.edges.contains({spine[i - 1], spine[i]})) return false;
  }
  return true;
}

/// The result of Algorithm 2: the graph with the edges of the spine, its bags, and its nodes in the order of the spine.
struct SpineAddition {
  Digraph graph;
  Bags bags;
  Sequence spine;
};

/// Returns the interval graph of a path decomposition. In it, two nodes are adjacent if they share a bag. Each edge
/// leads to the later one of its two nodes in `order`, which is a topological order of the graph.
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

/// Runs Algorithm 2, which adds a spine to the graph. Among nodes whose intervals have the same right end, the node of
/// lower index comes first. If the bags of the input are not cliques, the ends of an added edge may share no bag of the
/// result. The reason: let r_u be the right end of u's interval, and let the last child v_i of u end to the right of
/// r_u. Then, contrary to the paper, the interval of the node that ProcessNode(u) returns need not contain r_u. If the
/// input is the interval_graph() of the bags, the result is a decomposition.
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

// From here on, nodes are numbered along the spine or in a topological order, as in the paper. So u precedes v if u <
// v.

inline bool has_long_spine(const Digraph& graph) {
  return is_spine(graph, Sequence(graph.nodes.begin(), graph.nodes.end()));
}

/// Returns last(X), the node of X with the highest number. X must not be empty.
inline NodeId last(const Nodes& bag) { return *bag.rbegin(); }

/// Returns whether Lemma 9 holds: if a is in bag k and b is in bag l, each bag from k to l has a node numbered from a
/// to b.
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

/// Returns whether Lemma 10 holds for a bag `with_final` that contains the final node: from bag to bag, last() does not
/// fall before this bag, and does not rise after it.
inline bool lemma10(const Bags& bags, std::size_t with_final) {
  for (std::size_t i = 1; i < bags.size(); ++i) {
    if (i <= with_final && last(bags[i - 1]) > last(bags[i])) return false;
    if (i > with_final && last(bags[i - 1]) < last(bags[i])) return false;
  }
  return true;
}

/// Returns whether Lemma 11 holds for bags k and l on the same side of a bag with the final node, where l is farther
/// away from it. The bags from k to l are restricted to nodes below last(bags[l]). G'' is the graph that these nodes
/// induce, in which the nodes of the first and of the last restricted bag become cliques. The lemma says that G'' has a
/// long spine, and that the restricted bags decompose it with a width lower than that of `bags`.
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

}  // namespace cairn::tests::kumar2019
