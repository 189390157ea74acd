#include "cairn/solvers/decomposition/path_decomposition.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "cairn/tests/catch.h"
#include "cairn/tests/solvers/decomposition/literal.h"
#include "cairn/tests/support/folded_chain.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::solvers::path_decomposition_test {
namespace {

using core::Graph;
using core::NodeId;
namespace paper = tests::kumar2019;

Graph chain(NodeId n) {
  core::GraphBuilder builder;
  for (NodeId i = 0; i < n; ++i) {
    builder.add({.name = "n" + std::to_string(i),
                 .inputs = i == 0 ? std::vector<core::OutputRef>{} : std::vector<core::OutputRef>{i - 1}});
  }
  return builder.build();
}

TEST_CASE("path decompositions: every layout gives a valid one of at most n bags, as the definition says") {
  tests::Random random(31);
  for (int i = 0; i < 1500; ++i) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 1, .max_nodes = 12});
    std::vector<NodeId> layout = tests::numbers_below(graph.node_count());
    random.shuffle(layout);
    const PathDecomposition found = decomposition_of_layout(graph, layout);
    REQUIRE(check_path_decomposition(graph, found) == "");
    CHECK(static_cast<NodeId>(found.bags.size()) <= graph.node_count());
    const auto undirected = paper::digraph(graph);
    CHECK(paper::is_path_decomposition(undirected, paper::sets(found.bags)));
    CHECK(paper::width(paper::path_decomposition(undirected, layout)) == found.width);
  }
}

TEST_CASE("path decompositions: exact up to 20 nodes, and the heuristics are close on what is larger") {
  tests::Random random(32);
  for (int i = 0; i < 600; ++i) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 1, .max_nodes = 10});
    const int pathwidth = paper::pathwidth(paper::digraph(graph)).first;
    const PathDecomposition exact = exact_path_decomposition(graph);
    REQUIRE(check_path_decomposition(graph, exact) == "");
    CHECK(exact.width == pathwidth);
    CHECK(path_decomposition(graph).width == pathwidth);
  }
  for (int i = 0; i < 200; ++i) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 21, .max_nodes = 80});
    const PathDecomposition found = path_decomposition(graph);
    REQUIRE(check_path_decomposition(graph, found) == "");
    CHECK(static_cast<NodeId>(found.bags.size()) <= graph.node_count());
    CHECK(found.width <= decomposition_of_layout(graph, graph.input_order()).width);
  }
  // The work limit is one too small for the exact method, so the heuristics are used.
  int least = 0, graphs = 0;
  for (int i = 0; i < 150; ++i) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 10, .max_nodes = 14});
    core::Limit limit{.work = std::int64_t{graph.node_count()} << graph.node_count()};
    --limit.work;
    core::Stopwatch watch(limit);
    const PathDecomposition found = path_decomposition(graph, &watch);
    REQUIRE(check_path_decomposition(graph, found) == "");
    CHECK(found.width <= decomposition_of_layout(graph, graph.input_order()).width);
    least += found.width == exact_path_decomposition(graph).width;
    ++graphs;
  }
  INFO(least << " of " << graphs << " have the least width");
  CHECK(10 * least > 9 * graphs);
  CHECK_THROWS_AS(exact_path_decomposition(chain(21)), std::invalid_argument);
}

TEST_CASE("path decompositions: folded chains are found at their width, long ones too") {
  tests::Random random(33);
  for (const int folds : {1, 2, 3, 4, 5}) {
    const Graph graph = tests::folded_chain(random, folds, 400, 60);
    const PathDecomposition found = path_decomposition(graph);
    REQUIRE(check_path_decomposition(graph, found) == "");
    CHECK(found.width <= folds + 1);
  }
  const Graph graph = chain(100'000);
  CHECK(path_decomposition(graph).width == 1);
}

TEST_CASE("path decompositions: bags that a neighbour holds are left out, whatever their order") {
  tests::Random random(34);
  for (int i = 0; i < 1000; ++i) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 1, .max_nodes = 15});
    std::vector<NodeId> layout = tests::numbers_below(graph.node_count());
    random.shuffle(layout);
    PathDecomposition found = decomposition_of_layout(graph, layout);
    const auto width = found.width;
    for (std::size_t b = found.bags.size(); b-- > 0;) {
      if (random.chance(50)) found.bags.insert(found.bags.begin() + static_cast<std::ptrdiff_t>(b), found.bags[b]);
      // Inserts a bag before bag b, which contains some of the nodes of bag b. It contains every node that is also in
      // bag b - 1, so that the bags of each node stay consecutive.
      std::vector<NodeId> part;
      for (const NodeId v : found.bags[b]) {
        const bool further = b > 0 && std::count(found.bags[b - 1].begin(), found.bags[b - 1].end(), v) > 0;
        if (further || random.chance(50)) part.push_back(v);
      }
      if (!part.empty()) found.bags.insert(found.bags.begin() + static_cast<std::ptrdiff_t>(b), part);
    }
    REQUIRE(check_path_decomposition(graph, found) == "");
    const PathDecomposition reduced = drop_nested_bags(found);
    REQUIRE(check_path_decomposition(graph, reduced) == "");
    CHECK(reduced.width == width);
    CHECK(static_cast<NodeId>(reduced.bags.size()) <= graph.node_count());
  }
}

TEST_CASE("path decompositions: the check names what is wrong") {
  const Graph graph = chain(4);
  const PathDecomposition good{{{0, 1}, {1, 2}, {2, 3}}, 1};
  CHECK(check_path_decomposition(graph, good) == "");
  CHECK(check_path_decomposition(graph, {{{0, 1}, {2, 3}}, 1}) == "nodes 'n1' and 'n2' share no bag");
  CHECK(check_path_decomposition(graph, {{{0, 1}, {1, 2}}, 1}) == "node 'n3' is in no bag");
  CHECK(check_path_decomposition(graph, {{{0, 1}, {1, 2}, {0}, {2, 3}}, 1}) ==
        "the bags of node 'n0' are not consecutive");
  CHECK(check_path_decomposition(graph, {{{0, 1}, {1, 2}, {2, 3, 4}}, 2}) == "bag 2 holds 4, which is not a node");
  CHECK(check_path_decomposition(graph, {{{1, 0}, {1, 2}, {2, 3}}, 1}) == "bag 0 is not ascending at node 0");
  CHECK(check_path_decomposition(graph, {good.bags, 2}) == "the width is 1, not 2");
  const std::vector<NodeId> spine{0, 2, 1, 3};
  CHECK(check_path_decomposition(graph, good, spine) == "'n0' and 'n2', neighbours on the spine, share no bag");
}

TEST_CASE("path decompositions: an expired watch ends the search with a valid one") {
  tests::Random random(35);
  const Graph graph = tests::random_graph(random, {.min_nodes = 50, .max_nodes = 60});
  for (const std::int64_t work : {0, 100, 1000, 20'000}) {
    core::Stopwatch watch(core::Limit{.work = work});
    CHECK(check_path_decomposition(graph, path_decomposition(graph, &watch)) == "");
  }
  CHECK(path_decomposition(Graph()).bags.empty());
}

}  // namespace
}  // namespace cairn::solvers::path_decomposition_test
