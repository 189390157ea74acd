#include "cairn/solvers/decomposition/spine.h"

#include <algorithm>
#include <vector>

#include "cairn/tests/catch.h"
#include "cairn/tests/reference/kumar2019.h"
#include "cairn/tests/support/folded_chain.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::solvers::spine_test {
namespace {

using core::Graph;
using core::NodeId;

PathDecomposition any_decomposition(tests::Random& random, const Graph& graph) {
  std::vector<NodeId> layout(graph.input_order().begin(), graph.input_order().end());
  if (random.chance(70)) random.shuffle(layout);
  return decomposition_of_layout(graph, layout);
}

bool topological(const Graph& graph, const std::vector<NodeId>& order) {
  std::vector<NodeId> place(graph.node_count(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<NodeId>(i);
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    for (const NodeId u : graph.predecessors(v)) {
      if (place[u] < 0 || place[u] >= place[v]) return false;
    }
  }
  return order.size() == static_cast<std::size_t>(graph.node_count());
}

TEST_CASE("Theorem 8: a spine is added within bags of 2 w + 3 nodes") {
  tests::Random random(41);
  int added = 0, largest = 0;
  for (int i = 0; i < 6000; ++i) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 1, .max_nodes = 30});
    const PathDecomposition before = any_decomposition(random, graph);
    const Spine spine = add_spine(graph, before);
    REQUIRE(topological(graph, spine.order));
    REQUIRE(check_path_decomposition(graph, spine.decomposition, spine.order) == "");
    CHECK(static_cast<NodeId>(spine.decomposition.bags.size()) <= graph.node_count());
    if (spine.added) {
      CHECK(spine.decomposition.width + 1 <= 2 * before.width + 3);
    } else {
      CHECK(spine.decomposition.bags == before.bags);
    }
    added += spine.added;
    largest = std::max(largest, spine.decomposition.width + 1 - 2 * before.width);
  }
  CHECK(added > 3000);
  CHECK(largest >= 1);  // from some decomposition of width w, a bag of at least 2 w + 1 nodes results
}

TEST_CASE("Algorithm 2 on the interval graph: the paths that it joins share bags where the printed one's do not") {
  // The edges are 0 -> 1 -> 2. Nodes 3 and 4 have no edges. All bags with node 2 are to the right of all bags with node
  // 3. In such a case, the bags of the printed algorithm are no decomposition, but those of add_spine() must be one.
  const Graph graph = tests::build_graph({tests::make_node("0"), tests::make_node("1", 0, {0}),
                                          tests::make_node("2", 0, {1}), tests::make_node("3"), tests::make_node("4")});
  const PathDecomposition bags{{{0, 1}, {1, 3}, {1, 4}, {1, 2}}, 1};
  REQUIRE(check_path_decomposition(graph, bags) == "");
  const Spine spine = add_spine(graph, bags);
  CHECK(spine.added);
  CHECK(topological(graph, spine.order));
  CHECK(check_path_decomposition(graph, spine.decomposition, spine.order) == "");
  CHECK(spine.decomposition.width + 1 <= 5);
}

TEST_CASE("Lemmas 9, 10 and 11 hold on what Algorithm 2 makes") {
  namespace paper = tests::kumar2019;
  tests::Random random(42);
  for (int i = 0; i < 1500; ++i) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 2, .max_nodes = 9});
    const Spine spine = add_spine(graph, any_decomposition(random, graph));
    // Lemmas 9 to 11 of Kumar et al. refer to nodes by their positions on the spine, so the nodes are renumbered.
    const NodeId n = graph.node_count();
    std::vector<NodeId> place(n);
    for (NodeId p = 0; p < n; ++p) place[spine.order[p]] = p;
    paper::Digraph spined;
    for (NodeId v = 0; v < n; ++v) {
      spined.nodes.insert(v);
      if (v > 0) spined.edges.insert({v - 1, v});
      for (const NodeId u : graph.predecessors(v)) spined.edges.insert({place[u], place[v]});
    }
    paper::Bags bags;
    for (const auto& bag : spine.decomposition.bags) {
      bags.emplace_back();
      for (const NodeId v : bag) bags.back().insert(place[v]);
    }
    REQUIRE(paper::is_spine(spined, {spined.nodes.begin(), spined.nodes.end()}));
    REQUIRE(paper::is_path_decomposition(spined, bags));
    CHECK(paper::lemma9(bags));
    for (std::size_t c = 0; c < bags.size(); ++c) {
      if (!bags[c].contains(n - 1)) continue;
      CHECK(paper::lemma10(bags, c));
      for (std::size_t k = 0; k < bags.size(); ++k) {
        for (std::size_t l = c < k ? k : 0; l <= (c < k ? bags.size() - 1 : k); ++l) {
          CHECK(paper::lemma11(spined, bags, k, l));
        }
      }
    }
  }
}

TEST_CASE("a Hamiltonian path is the spine; long chains do not need a deep stack") {
  tests::Random random(43);
  const Graph folded = tests::folded_chain(random, 3, 50, 50);
  const PathDecomposition decomposition = path_decomposition(folded);
  const Spine spine = add_spine(folded, decomposition);
  CHECK_FALSE(spine.added);
  CHECK(spine.order == hamiltonian_path(folded));
  CHECK(spine.decomposition.bags == decomposition.bags);

  // The first graph has two separate chains of 50,000 nodes. The second has one chain of 100,000 nodes, with a branch
  // at its end. Neither has a Hamiltonian path, and a recursion along a chain would overflow the stack.
  core::GraphBuilder two, branched;
  for (NodeId v = 0; v < 100'000; ++v) {
    core::Node node;
    if (v >= 2) node.inputs.push_back(v - 2);
    two.add(node);
    core::Node next;
    if (v >= 1) next.inputs.push_back(v == 99'999 ? v - 2 : v - 1);
    branched.add(next);
  }
  for (const Graph& graph : {two.build(), branched.build()}) {
    const PathDecomposition found = path_decomposition(graph);
    const Spine long_spine = add_spine(graph, found);
    CHECK(hamiltonian_path(graph).empty());
    CHECK(topological(graph, long_spine.order));
    CHECK(check_path_decomposition(graph, long_spine.decomposition, long_spine.order) == "");
    CHECK(long_spine.decomposition.width + 1 <= 2 * found.width + 3);
  }
  CHECK(add_spine(Graph(), {}).order.empty());
}

}  // namespace
}  // namespace cairn::solvers::spine_test
