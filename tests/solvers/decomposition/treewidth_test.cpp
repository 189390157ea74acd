#include "cairn/solvers/decomposition/treewidth.h"

#include <atomic>
#include <utility>
#include <vector>

#include "cairn/tests/catch.h"
#include "cairn/tests/solvers/decomposition/literal.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::treewidth_test {
namespace {

using core::Graph;
using core::NodeId;

TEST_CASE("the treewidth lies between the bounds that are found, and nearly always is the upper one") {
  int exact = 0, total = 0;
  tests::for_each_seed(400, [&](tests::Random& random) {
    const Graph graph = tests::random_graph(random, {.max_nodes = 10});
    const int treewidth = tests::kumar2019::exact_treewidth(graph);
    const Treewidth found = find_treewidth(graph, {.limit = {.work = 20'000}});
    REQUIRE(check_decomposition(graph, found.decomposition) == "");
    CHECK(found.lower <= treewidth);
    CHECK(found.decomposition.width >= treewidth);
    exact += found.decomposition.width == treewidth;
    ++total;
  });
  CHECK(exact * 100 >= total * 99);
}

TEST_CASE("local search never widens, ends at the bound, and does the same again under a limit of work") {
  int narrower = 0;
  tests::for_each_seed(80, [&](tests::Random& random) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 20, .max_nodes = 90});
    const UndirectedGraph undirected(graph);
    TreeDecomposition start = random.chance(50) ? min_fill_decomposition(graph)
                                                : min_fill_decomposition(graph, static_cast<int>(random.between(0, 5)));
    const auto improved = [&](std::int32_t lower) {
      core::Random numbers(7);
      core::Stopwatch watch({.work = 30'000});
      return improve_decomposition(undirected, start, lower, numbers, watch);
    };
    const TreeDecomposition end = improved(0);
    REQUIRE(check_decomposition(graph, end) == "");
    CHECK(end.width <= start.width);
    CHECK(static_cast<NodeId>(end.bags.size()) <= graph.node_count());
    CHECK(improved(0).bags == end.bags);
    CHECK(improved(start.width).width == start.width);
    narrower += end.width < start.width;
  });
  CHECK(narrower > 30);
}

/// Returns a graph of several components: a cycle, a clique, a star, and single nodes.
Graph disconnected() {
  core::GraphBuilder builder;
  for (int i = 0; i < 24; ++i) builder.add({});
  for (NodeId v = 1; v < 6; ++v) builder.add_input(v, v - 1);
  builder.add_input(5, 0);
  for (NodeId v = 7; v < 12; ++v) {
    for (NodeId u = 6; u < v; ++u) builder.add_input(v, u);
  }
  for (NodeId v = 13; v < 20; ++v) builder.add_input(v, 12);
  return builder.build();
}

TEST_CASE("disconnected graphs, graphs without edges and without nodes") {
  const Graph graph = disconnected();
  const Treewidth found = find_treewidth(graph);
  CHECK(check_decomposition(graph, found.decomposition) == "");
  CHECK(found.decomposition.width == 5);
  CHECK(found.lower == 5);
  CHECK_FALSE(found.timed_out);
  core::Random random(1);
  core::Stopwatch watch({.work = 100'000});
  const TreeDecomposition one_bag = min_fill_decomposition(graph, -1);
  REQUIRE(one_bag.bags.size() == 1);
  const TreeDecomposition improved = improve_decomposition(graph, one_bag, 5, random, watch);
  CHECK(check_decomposition(graph, improved) == "");
  CHECK(improved.width == 5);
  core::GraphBuilder isolated;
  for (int i = 0; i < 3; ++i) isolated.add({});
  CHECK(find_treewidth(isolated.build()).decomposition.width == 0);
  const Treewidth empty = find_treewidth(Graph());
  CHECK(empty.decomposition.bags.empty());
  CHECK(empty.lower == -1);
}

TEST_CASE("a stop flag and an expired limit end the search with a valid decomposition") {
  tests::Random random(9);
  const Graph graph = tests::random_graph(random, {.min_nodes = 80, .max_nodes = 90});
  const std::atomic<bool> stop = true;
  for (const core::Limit& limit : {core::Limit{.stop = &stop}, core::Limit{.seconds = 0}, core::Limit{.work = 0}}) {
    const Treewidth found = find_treewidth(graph, {.limit = limit});
    CHECK(check_decomposition(graph, found.decomposition) == "");
    CHECK(found.timed_out);
    CHECK(found.lower >= 0);
  }
}

TEST_CASE("local search takes min-fill's width of 5,000 layers of four to the lower bound") {
  tests::Random random(11);
  constexpr NodeId kNodes = 20'000;
  std::vector<std::pair<NodeId, NodeId>> edges;
  for (NodeId v = 4; v < kNodes; ++v) {
    for (int i = 0; i < 2; ++i) edges.emplace_back((v / 4 - 1) * 4 + static_cast<NodeId>(random.below(4)), v);
  }
  const UndirectedGraph graph(kNodes, edges);
  const TreeDecomposition start = decomposition_of(graph, elimination_order(graph));
  CHECK(start.width >= 6);
  core::Random numbers(1);
  core::Stopwatch watch({.work = 20'000'000});
  const TreeDecomposition end = improve_decomposition(graph, start, 5, numbers, watch);
  CHECK(end.width == 5);
}

}  // namespace
}  // namespace cairn::solvers::treewidth_test
