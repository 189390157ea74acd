#include "cairn/solvers/decomposition/elimination.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "cairn/solvers/decomposition/internal/eliminator.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/solvers/decomposition/literal.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::elimination_test {
namespace {

using core::Graph;
using core::NodeId;

/// Eliminates nodes literally by the definition. It stores sets of neighbours, and computes degrees and fills (numbers
/// of missing edges between neighbours) anew on every call.
struct NaiveElimination {
  std::vector<std::set<NodeId>> adjacent;
  std::vector<bool> gone;

  explicit NaiveElimination(const UndirectedGraph& graph) : adjacent(graph.node_count()), gone(graph.node_count()) {
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      adjacent[v].insert(graph.neighbours(v).begin(), graph.neighbours(v).end());
    }
  }
  std::int64_t degree(NodeId v) const { return static_cast<std::int64_t>(adjacent[v].size()); }
  std::int64_t fill(NodeId v) const {
    std::int64_t missing = 0;
    for (const NodeId a : adjacent[v]) {
      for (const NodeId b : adjacent[v]) missing += a < b && !adjacent[a].contains(b);
    }
    return missing;
  }
  NodeId next(EliminationRule rule) const {
    NodeId best = core::kNoNode;
    std::tuple<std::int64_t, std::int64_t> least;
    for (NodeId v = 0; v < static_cast<NodeId>(gone.size()); ++v) {
      if (gone[v]) continue;
      const std::tuple key(rule == EliminationRule::min_fill ? fill(v) : 0, degree(v));
      if (best == core::kNoNode || key < least) std::tie(best, least) = std::tuple(v, key);
    }
    return best;
  }
  void eliminate(NodeId v) {
    for (const NodeId a : adjacent[v]) {
      for (const NodeId b : adjacent[v]) {
        if (a != b) adjacent[a].insert(b);
      }
      adjacent[a].erase(v);
    }
    adjacent[v].clear();
    gone[v] = true;
  }
};

/// Returns a random graph in which one to six nodes (hubs) have most of the edges.
UndirectedGraph hub_graph(tests::Random& random, NodeId nodes) {
  const auto hubs = static_cast<NodeId>(random.between(1, 6));
  const int density = static_cast<int>(random.between(20, 100));
  std::vector<std::pair<NodeId, NodeId>> edges;
  for (NodeId v = 1; v < nodes; ++v) {
    for (NodeId hub = 0; hub < std::min(hubs, v); ++hub) {
      if (random.chance(density)) edges.emplace_back(hub, v);
    }
    if (random.chance(70)) edges.emplace_back(static_cast<NodeId>(random.between(std::max(0, v - 4), v - 1)), v);
  }
  return {nodes, edges};
}

/// Returns a random graph that is so dense that nodes can have more than 48 neighbours. The eliminator stores so many
/// neighbours in a hash table in addition to a list (solvers/decomposition/internal/neighbour_sets.h), so tests on this
/// graph also test the hash tables.
UndirectedGraph dense_graph(tests::Random& random, NodeId nodes) {
  const int density = static_cast<int>(random.between(10, 60));
  std::vector<std::pair<NodeId, NodeId>> edges;
  for (NodeId v = 1; v < nodes; ++v) {
    for (NodeId u = 0; u < v; ++u) {
      if (random.chance(density)) edges.emplace_back(v, u);
    }
  }
  return {nodes, edges};
}

void check_elimination(const UndirectedGraph& graph, EliminationRule rule, int every) {
  Eliminator eliminator(graph, {.rule = rule});
  NaiveElimination naive(graph);
  for (NodeId step = 0; step < graph.node_count(); ++step) {
    REQUIRE_FALSE(eliminator.done());
    if (step % every == 0) {
      for (NodeId v = 0; v < graph.node_count(); ++v) {
        REQUIRE(eliminator.eliminated(v) == naive.gone[v]);
        if (naive.gone[v]) continue;
        REQUIRE(eliminator.degree(v) == naive.degree(v));
        if (rule == EliminationRule::min_fill) REQUIRE(eliminator.fill(v) == naive.fill(v));
      }
      REQUIRE(eliminator.next() == naive.next(rule));
    }
    const NodeId v = eliminator.next();
    const auto around = eliminator.neighbours(v);
    REQUIRE(std::set<NodeId>(around.begin(), around.end()) == naive.adjacent[v]);
    eliminator.eliminate(v);
    naive.eliminate(v);
  }
  CHECK(eliminator.done());
}

TEST_CASE("fills and degrees kept up to date are those counted anew, at every elimination of small graphs") {
  tests::for_each_seed(1000, [](tests::Random& random) {
    const Graph graph = tests::random_graph(random, {.max_nodes = 20});
    check_elimination(graph, EliminationRule::min_fill, 1);
    check_elimination(graph, EliminationRule::min_degree, 1);
  });
}

TEST_CASE("fills and degrees kept up to date are those counted anew, on hubs and in dense graphs") {
  tests::for_each_seed(12, [](tests::Random& random) {
    const UndirectedGraph hubs = hub_graph(random, static_cast<NodeId>(random.between(200, 400)));
    check_elimination(hubs, EliminationRule::min_fill, 40);
    check_elimination(hubs, EliminationRule::min_degree, 40);
    const UndirectedGraph dense = dense_graph(random, static_cast<NodeId>(random.between(70, 110)));
    check_elimination(dense, EliminationRule::min_fill, 20);
    check_elimination(dense, EliminationRule::min_degree, 20);
  });
}

TEST_CASE("every order gives a valid decomposition of its width with no bag in a neighbour's, and at most n bags") {
  tests::for_each_seed(1000, [](tests::Random& random) {
    const Graph graph = tests::random_graph(random, {.max_nodes = 40});
    const UndirectedGraph undirected(graph);
    EliminationOrder order;
    if (random.chance(50)) {
      core::Random ties(static_cast<std::uint64_t>(random.below(1'000'000)));
      EliminationOptions options{.rule = random.chance(50) ? EliminationRule::min_fill : EliminationRule::min_degree};
      if (random.chance(50)) options.random = &ties;
      if (random.chance(50)) options.noise = static_cast<std::int32_t>(random.between(0, 5));
      if (random.chance(30)) options.core_degree = static_cast<std::int32_t>(random.between(0, 4));
      order = elimination_order(undirected, options);
    } else {
      order.nodes = tests::numbers_below(graph.node_count());
      random.shuffle(order.nodes);
      NaiveElimination naive(undirected);
      for (const NodeId v : order.nodes) {
        order.width = std::max(order.width, static_cast<std::int32_t>(naive.degree(v)));
        naive.eliminate(v);
      }
    }
    const TreeDecomposition decomposition = decomposition_of(undirected, order);
    REQUIRE(check_decomposition(graph, decomposition) == "");
    CHECK(decomposition.width == order.width);
    CHECK(static_cast<NodeId>(decomposition.bags.size()) <= graph.node_count());
    for (std::size_t b = 0; b < decomposition.bags.size(); ++b) {
      const auto& bag = decomposition.bags[b];
      for (const std::int32_t c : decomposition.tree[b]) {
        const auto& other = decomposition.bags[c];
        CHECK_FALSE(std::includes(other.begin(), other.end(), bag.begin(), bag.end()));
      }
    }
  });
}

TEST_CASE("the lower bound is at most the treewidth, and is it on trees, cycles and cliques") {
  int met = 0;
  tests::for_each_seed(2000, [&](tests::Random& random) {
    const Graph graph = tests::random_graph(random, {.max_nodes = 9});
    const int treewidth = tests::kumar2019::exact_treewidth(graph);
    const std::int32_t bound = treewidth_lower_bound(graph);
    REQUIRE(bound <= treewidth);
    core::Random ties(static_cast<std::uint64_t>(treewidth));
    REQUIRE(treewidth_lower_bound(graph, &ties) <= treewidth);
    CHECK(bound >= (graph.edge_count() > 0 ? 1 : 0));
    met += bound == treewidth;
  });
  CHECK(met >= 1900);
  std::vector<std::pair<NodeId, NodeId>> edges;
  for (NodeId v = 1; v < 100; ++v) edges.emplace_back(v / 3, v);
  CHECK(treewidth_lower_bound({100, edges}) == 1);
  edges.clear();
  for (NodeId v = 0; v < 100; ++v) edges.emplace_back(v, (v + 1) % 100);
  CHECK(treewidth_lower_bound({100, edges}) == 2);
  edges.clear();
  for (NodeId v = 0; v < 100; ++v) {
    for (NodeId u = 0; u < v; ++u) edges.emplace_back(u, v);
  }
  CHECK(treewidth_lower_bound({100, edges}) == 99);
  CHECK(treewidth_lower_bound({0, {}}) == -1);
  CHECK(treewidth_lower_bound({3, {}}) == 0);
}

TEST_CASE("stars, nodes that share many readers and long paths of 100,000 nodes") {
  // The graphs are so large that an algorithm of quadratic time would run for minutes.
  constexpr NodeId kNodes = 100'000;
  std::vector<std::pair<NodeId, NodeId>> star, path, both, shared;
  for (NodeId v = 1; v < kNodes; ++v) {
    star.emplace_back(0, v);
    path.emplace_back(v - 1, v);
    for (NodeId u = 0; v >= 3 && u < 3; ++u) shared.emplace_back(u, v);
  }
  both = star;
  both.insert(both.end(), path.begin() + 1, path.end());
  const std::pair<std::vector<std::pair<NodeId, NodeId>>, std::int32_t> cases[] = {
      {star, 1}, {path, 1}, {both, 2}, {shared, 3}};
  for (const auto& [edges, treewidth] : cases) {
    const UndirectedGraph graph(kNodes, edges);
    CHECK(elimination_order(graph, {.rule = EliminationRule::min_fill}).width == treewidth);
    CHECK(elimination_order(graph, {.rule = EliminationRule::min_degree}).width == treewidth);
    CHECK(treewidth_lower_bound(graph) == treewidth);
  }
}

}  // namespace
}  // namespace cairn::solvers::elimination_test
