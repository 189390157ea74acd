#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"
#include "cairn/tests/reference/kumar2019/decompositions.h"

/// These functions convert decompositions between the types of the library and the types of tests/support/kumar2019/.
namespace cairn::tests::kumar2019 {

inline Bags sets(const std::vector<std::vector<NodeId>>& bags) {
  Bags result;
  for (const auto& bag : bags) result.emplace_back(bag.begin(), bag.end());
  return result;
}
inline Decomposition literal(const solvers::TreeDecomposition& decomposition) {
  Decomposition result{sets(decomposition.bags), {}};
  for (std::size_t a = 0; a < decomposition.tree.size(); ++a) {
    for (const std::int32_t b : decomposition.tree[a]) {
      if (a < static_cast<std::size_t>(b)) result.tree.push_back({a, static_cast<std::size_t>(b)});
    }
  }
  return result;
}
inline solvers::TreeDecomposition library(const Decomposition& decomposition) {
  solvers::TreeDecomposition result;
  for (const Nodes& bag : decomposition.bags) result.bags.emplace_back(bag.begin(), bag.end());
  result.tree.resize(result.bags.size());
  for (const auto& [a, b] : decomposition.tree) {
    result.tree[a].push_back(static_cast<std::int32_t>(b));
    result.tree[b].push_back(static_cast<std::int32_t>(a));
  }
  result.width = width(decomposition.bags);
  return result;
}

/// Returns the exact treewidth of a graph, which must have at most 12 nodes.
inline int exact_treewidth(const Graph& graph) { return treewidth(digraph(graph)).first; }

}  // namespace cairn::tests::kumar2019
