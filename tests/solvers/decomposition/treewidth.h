#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"

namespace cairn::tests {

/// Treewidth by dynamic programming over elimination sets (Bodlaender et al. 2012): for the best order of S, the
/// largest number of nodes outside S that an eliminated node reaches through S. O(2^n n^2), for small n.
inline int exact_treewidth(const core::Graph& graph) {
  const int n = graph.node_count();
  std::vector<std::uint32_t> adjacent(n, 0);
  for (core::NodeId v = 0; v < n; ++v) {
    for (const core::NodeId u : graph.inputs(v)) {
      adjacent[v] |= 1u << u;
      adjacent[u] |= 1u << v;
    }
  }
  const auto reached = [&](std::uint32_t through, int v) {
    std::uint32_t seen = 1u << v, frontier = seen;
    while (frontier) {
      std::uint32_t next = 0;
      for (int u = 0; u < n; ++u) {
        if (frontier >> u & 1) next |= adjacent[u];
      }
      next &= ~seen;
      seen |= next;
      frontier = next & through;
    }
    return __builtin_popcount(seen & ~through & ~(1u << v));
  };
  std::vector<int> width(std::size_t{1} << n, n);
  width[0] = 0;
  for (std::uint32_t set = 1; set < (1u << n); ++set) {
    for (int v = 0; v < n; ++v) {
      if (set >> v & 1)
        width[set] = std::min(width[set], std::max(width[set ^ (1u << v)], reached(set ^ (1u << v), v)));
    }
  }
  return width.back();
}

/// Checks the three properties by definition. The tree must be a tree.
inline bool is_decomposition(const core::Graph& graph, const solvers::TreeDecomposition& decomposition) {
  const auto holds = [&](std::size_t b, core::NodeId v) {
    const auto& bag = decomposition.bags[b];
    return std::find(bag.begin(), bag.end(), v) != bag.end();
  };
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    std::vector<bool> reached(decomposition.bags.size(), false);
    std::vector<std::size_t> walk;
    for (std::size_t b = 0; b < reached.size() && walk.empty(); ++b) {
      if (holds(b, v)) walk.push_back(b);
    }
    if (walk.empty()) return false;
    reached[walk.front()] = true;
    for (std::size_t i = 0; i < walk.size(); ++i) {
      for (const std::int32_t c : decomposition.tree[walk[i]]) {
        if (!reached[c] && holds(c, v)) walk.push_back(c);
        if (holds(c, v)) reached[c] = true;
      }
    }
    for (std::size_t b = 0; b < reached.size(); ++b) {
      if (holds(b, v) && !reached[b]) return false;
    }
    for (const core::NodeId u : graph.predecessors(v)) {
      bool together = false;
      for (std::size_t b = 0; b < reached.size(); ++b) together = together || (holds(b, u) && holds(b, v));
      if (!together) return false;
    }
  }
  return true;
}

}  // namespace cairn::tests
