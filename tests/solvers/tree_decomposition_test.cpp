#include "cairn/solvers/decomposition/tree_decomposition.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::solvers {
namespace {

using core::Graph;
using core::NodeId;

/// Treewidth by dynamic programming over elimination sets (Bodlaender et al. 2012): for the best order of S, the
/// largest number of nodes outside S that an eliminated node reaches through S. O(2^n n^2); small n.
int exact_treewidth(const Graph& graph) {
  const int n = graph.node_count();
  std::vector<std::uint32_t> adjacent(n, 0);
  for (NodeId v = 0; v < n; ++v) {
    for (const NodeId u : graph.inputs(v)) {
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

TEST_CASE("min-fill gives valid decompositions, with at most n bags, close to the treewidth") {
  tests::Random random(1);
  int exact = 0, total = 0;
  for (int i = 0; i < 500; ++i) {
    const Graph graph = tests::random_graph(random, {.max_nodes = 10});
    const TreeDecomposition decomposition = min_fill_decomposition(graph);
    REQUIRE(check_decomposition(graph, decomposition) == "");
    CHECK(static_cast<NodeId>(decomposition.bags.size()) <= graph.node_count());
    const int treewidth = exact_treewidth(graph);
    CHECK(decomposition.width >= treewidth);
    exact += decomposition.width == treewidth;
    ++total;
  }
  CHECK(exact * 100 >= total * 90);
}

TEST_CASE("a small core degree gives one large bag and still a valid decomposition") {
  tests::Random random(2);
  for (int i = 0; i < 300; ++i) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 20, .max_nodes = 60});
    for (const int degree : {0, 1, 2, 4}) {
      REQUIRE(check_decomposition(graph, min_fill_decomposition(graph, degree)) == "");
    }
  }
}

TEST_CASE("an expired watch ends the search with a valid decomposition") {
  tests::Random random(5);
  for (const std::int64_t work : {0, 10, 50}) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 40, .max_nodes = 60});
    core::Limit limit;
    limit.work = work;
    core::Stopwatch watch(limit);
    const TreeDecomposition decomposition = min_fill_decomposition(graph, 192, &watch);
    CHECK(check_decomposition(graph, decomposition) == "");
    if (work == 0) CHECK(decomposition.bags.size() == 1);
  }
}

TEST_CASE("the check finds broken decompositions") {
  core::GraphBuilder builder;
  for (int i = 0; i < 4; ++i) builder.add({});
  for (int i = 1; i < 4; ++i) builder.add_input(i, i - 1);
  const Graph path = builder.build();
  const TreeDecomposition good = min_fill_decomposition(path);
  REQUIRE(check_decomposition(path, good) == "");
  CHECK(good.width == 1);
  TreeDecomposition bad = good;
  bad.bags[0].pop_back();
  CHECK(check_decomposition(path, bad) != "");
  bad = good;
  bad.tree[0].clear();
  CHECK(check_decomposition(path, bad) != "");
  CHECK(check_decomposition(path, {{{0, 1}, {1, 2}, {0, 2, 3}}, {{1}, {0, 2}, {1}}, 2}) != "");
}

TEST_CASE("separators part the nodes, halve the bags, and no edge joins two components") {
  tests::Random random(3);
  for (int i = 0; i < 500; ++i) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 5, .max_nodes = 60});
    const TreeDecomposition decomposition = min_fill_decomposition(graph);
    const SeparatorTree tree = separator_tree(decomposition, graph.node_count());
    std::vector<int> held(graph.node_count(), 0);
    for (std::size_t p = 0; p < tree.parts.size(); ++p) {
      const auto& part = tree.parts[p];
      CHECK(part.begin == static_cast<std::int32_t>(p));
      for (const NodeId v : part.separator) {
        ++held[v];
        CHECK(tree.home[v] == static_cast<std::int32_t>(p));
      }
      for (const std::int32_t child : part.children) {
        CHECK(tree.parts[child].begin > part.begin);
        CHECK(tree.parts[child].end <= part.end);
        CHECK(2 * tree.parts[child].bags <= part.bags);
      }
    }
    CHECK(std::all_of(held.begin(), held.end(), [](int count) { return count == 1; }));
    // One end's part is always at or above the other's.
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      for (const NodeId u : graph.inputs(v)) {
        const auto &a = tree.parts[tree.home[u]], &b = tree.parts[tree.home[v]];
        const bool nested = (a.begin <= b.begin && b.end <= a.end) || (b.begin <= a.begin && a.end <= b.end);
        REQUIRE(nested);
      }
    }
  }
}

}  // namespace
}  // namespace cairn::solvers
