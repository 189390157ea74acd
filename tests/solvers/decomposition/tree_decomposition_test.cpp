#include "cairn/solvers/decomposition/tree_decomposition.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "cairn/tests/catch.h"
#include "cairn/tests/solvers/decomposition/literal.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::solvers::tree_decomposition_test {
namespace {

using core::Graph;
using core::NodeId;
namespace paper = tests::kumar2019;

TEST_CASE("min-fill gives valid decompositions, with at most n bags, close to the treewidth") {
  tests::Random random(1);
  int exact = 0, total = 0;
  for (int i = 0; i < 500; ++i) {
    const Graph graph = tests::random_graph(random, {.max_nodes = 10});
    const TreeDecomposition decomposition = min_fill_decomposition(graph);
    REQUIRE(check_decomposition(graph, decomposition) == "");
    CHECK(static_cast<NodeId>(decomposition.bags.size()) <= graph.node_count());
    const int treewidth = paper::exact_treewidth(graph);
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
    core::Stopwatch watch(core::Limit{.work = work});
    const TreeDecomposition decomposition = min_fill_decomposition(graph, 192, &watch);
    CHECK(check_decomposition(graph, decomposition) == "");
    if (work == 0) CHECK(decomposition.bags.size() == 1);
  }
}

TEST_CASE("the check says which node or edge a broken decomposition breaks") {
  core::GraphBuilder builder;
  for (const char* name : {"a", "b", "c", "d"}) builder.add(tests::make_node(name));
  for (NodeId v = 1; v < 4; ++v) builder.add_input(v, v - 1);
  const Graph path = builder.build();
  const TreeDecomposition good = min_fill_decomposition(path);
  REQUIRE(check_decomposition(path, good) == "");
  CHECK(good.width == 1);
  const auto problem = [&](TreeDecomposition broken) { return check_decomposition(path, broken); };
  CHECK(problem({{{0, 1}, {1, 2}, {2, 3}}, {{1}, {0, 2}, {1}}, 1}) == "");
  CHECK(problem({{{0, 1}, {1, 2}, {2}}, {{1}, {0, 2}, {1}}, 1}) == "node 'd' is in no bag");
  CHECK(problem({{{0, 1}, {1}, {2, 3}}, {{1}, {0, 2}, {1}}, 1}) ==
        "nodes 'b' and 'c' are joined by an edge but share no bag");
  CHECK(problem({{{0, 1}, {1, 2}, {0, 2, 3}}, {{1}, {0, 2}, {1}}, 2}) == "the bags of node 'a' are not connected");
  CHECK(problem({{{0, 1}, {1, 2}, {2, 3}}, {{1, 2}, {0, 2}, {0, 1}}, 1}) ==
        "the edge between bags 1 and 2 closes a cycle");
  CHECK(problem({{{0, 1}, {1, 2}, {2, 3}}, {{1}, {0}, {}}, 1}) == "bags 0 and 2 are not connected");
  CHECK(problem({{{0, 1}, {1, 2}, {2, 3}}, {{1}, {2}, {1}}, 1}) == "neighbours in the tree of bags are not mutual");
  CHECK(problem({{{0, 1}, {1, 2}, {2, 3}}, {{1}, {0, 3}, {1}}, 1}) == "bag 1 cannot have the neighbour 3");
  CHECK(problem({{{0, 1}, {1, 2}, {2, 3}}, {{1}, {0, 2}}, 1}) == "the tree is one of 2 bags, but there are 3");
  CHECK(problem({{{0, 1}, {2, 1}, {2, 3}}, {{1}, {0, 2}, {1}}, 1}) == "the nodes of bag 1 do not ascend");
  CHECK(problem({{{0, 1}, {1, 2}, {2, 4}}, {{1}, {0, 2}, {1}}, 1}) == "bag 2 holds 4, which is not a node");
  CHECK(problem({{{0, 1}, {1, 2}, {2, 3}}, {{1}, {0, 2}, {1}}, 2}) ==
        "the width is 2, but the largest bag has 2 nodes");
  CHECK(problem({}) == "node 'a' is in no bag");
  CHECK(check_decomposition(Graph(), {}) == "");
}

TEST_CASE("the check agrees with the three properties, tried one by one") {
  tests::Random random(7);
  int valid = 0;
  for (int i = 0; i < 3000; ++i) {
    const Graph graph = tests::random_graph(random, {.max_nodes = 8});
    TreeDecomposition decomposition = min_fill_decomposition(graph);
    // Changes up to two bags: a random node is removed from the bag, or added if the bag does not contain it.
    for (std::int64_t change = random.below(3); change > 0; --change) {
      auto& bag = decomposition.bags[random.below(static_cast<std::int64_t>(decomposition.bags.size()))];
      const auto v = static_cast<NodeId>(random.below(graph.node_count()));
      const auto at = std::lower_bound(bag.begin(), bag.end(), v);
      if (at != bag.end() && *at == v) {
        bag.erase(at);
      } else {
        bag.insert(at, v);
      }
    }
    decomposition.width = -1;
    for (const auto& bag : decomposition.bags)
      decomposition.width = std::max(decomposition.width, static_cast<std::int32_t>(bag.size()) - 1);
    const bool expected = paper::is_tree_decomposition(paper::digraph(graph), paper::literal(decomposition));
    CHECK((check_decomposition(graph, decomposition) == "") == expected);
    valid += expected;
  }
  CHECK(valid > 1000);
  CHECK(valid < 2500);
}

TEST_CASE("merging nested bags leaves at most n bags of any decomposition, none in a neighbour's, and it valid") {
  tests::Random random(8);
  for (int i = 0; i < 2000; ++i) {
    const Graph graph = tests::random_graph(random, {.max_nodes = 12});
    const TreeDecomposition merged = min_fill_decomposition(graph);
    // Adds bags whose nodes are all in a neighbouring bag. They may be empty. Each new bag is attached to one bag, or
    // inserted between two neighbouring bags.
    TreeDecomposition larger = merged;
    for (std::int64_t more = random.below(20); more > 0; --more) {
      const auto b = static_cast<std::int32_t>(random.below(static_cast<std::int64_t>(larger.bags.size())));
      const auto number = static_cast<std::int32_t>(larger.bags.size());
      std::vector<NodeId> bag = larger.bags[b];
      if (!larger.tree[b].empty() && random.chance(50)) {
        const std::int32_t c = random.pick(larger.tree[b]);
        std::vector<NodeId> common;
        std::set_intersection(bag.begin(), bag.end(), larger.bags[c].begin(), larger.bags[c].end(),
                              std::back_inserter(common));
        *std::find(larger.tree[b].begin(), larger.tree[b].end(), c) = number;
        *std::find(larger.tree[c].begin(), larger.tree[c].end(), b) = number;
        larger.bags.push_back(random.chance(50) ? common : bag);
        larger.tree.push_back({b, c});
      } else {
        std::erase_if(bag, [&](NodeId) { return random.chance(40); });
        larger.tree[b].push_back(number);
        larger.bags.push_back(bag);
        larger.tree.push_back({b});
      }
    }
    REQUIRE(check_decomposition(graph, larger) == "");
    const TreeDecomposition again = merge_nested_bags(larger);
    REQUIRE(check_decomposition(graph, again) == "");
    CHECK(again.width == merged.width);
    CHECK(static_cast<NodeId>(again.bags.size()) <= graph.node_count());
    for (std::size_t b = 0; b < again.bags.size(); ++b) {
      for (const std::int32_t c : again.tree[b]) {
        const auto &bag = again.bags[b], &other = again.bags[c];
        CHECK_FALSE(std::includes(other.begin(), other.end(), bag.begin(), bag.end()));
      }
    }
  }
}

/// Checks a tree of parts of the graph, in which the separator of each part divides the rest of the part into smaller
/// parts, its children. Every node must be in exactly one separator, the parts must be numbered correctly, and no edge
/// may join nodes of two parts of which neither contains the other.
void check_separators(const Graph& graph, const SeparatorTree& tree) {
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
    }
  }
  CHECK(std::all_of(held.begin(), held.end(), [](int count) { return count == 1; }));
  // The separators that contain the two ends of an edge must belong to the same part, or one part must be an ancestor
  // of the other part.
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    for (const NodeId u : graph.predecessors(v)) {
      const auto &a = tree.parts[tree.home[u]], &b = tree.parts[tree.home[v]];
      const bool nested = (a.begin <= b.begin && b.end <= a.end) || (b.begin <= a.begin && a.end <= b.end);
      REQUIRE(nested);
    }
  }
}

TEST_CASE("separators part the nodes and halve the bags or the bytes") {
  tests::Random random(3);
  int by_bytes = 0, parts = 0;
  for (int i = 0; i < 500; ++i) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 5, .max_nodes = 60});
    const TreeDecomposition decomposition = min_fill_decomposition(graph);
    const SeparatorTree bags = separator_tree(decomposition, graph);
    check_separators(graph, bags);
    for (const auto& part : bags.parts) {
      for (const std::int32_t child : part.children) CHECK(2 * bags.parts[child].bags <= part.bags);
    }
    const SeparatorTree bytes = separator_tree(decomposition, graph, Balance::bytes);
    check_separators(graph, bytes);
    std::vector<std::int64_t> inside(bytes.parts.size(), 0);
    for (std::size_t p = bytes.parts.size(); p-- > 0;) {
      const auto& part = bytes.parts[p];
      for (const NodeId v : part.separator) inside[p] += graph.size(v);
      for (const std::int32_t child : part.children) inside[p] += inside[child];
      bool half_of_bags = true, half_of_bytes = true;
      for (const std::int32_t child : part.children) {
        half_of_bags = half_of_bags && 2 * bytes.parts[child].bags <= part.bags;
        half_of_bytes = half_of_bytes && 2 * inside[child] <= inside[p];
        CHECK(3 * bytes.parts[child].bags <= 2 * part.bags);
      }
      const bool halved = half_of_bags || half_of_bytes;
      CHECK(halved);
      by_bytes += half_of_bytes;
      ++parts;
    }
  }
  CHECK(by_bytes * 100 >= parts * 90);
}

TEST_CASE("separators of a path and of a star of 200,000 bags") {
  constexpr std::int32_t kBags = 200'000;
  TreeDecomposition path, star;
  for (std::int32_t b = 0; b < kBags; ++b) {
    path.bags.push_back({b, b + 1});
    star.bags.push_back({0, b + 1});
    path.tree.emplace_back();
    star.tree.emplace_back();
    if (b == 0) continue;
    path.tree[b].push_back(b - 1);
    path.tree[b - 1].push_back(b);
    star.tree[b].push_back(0);
    star.tree[0].push_back(b);
  }
  CHECK(separator_tree(path, kBags + 1).parts.size() > kBags / 4);
  CHECK(separator_tree(star, kBags + 1).parts.size() == kBags);
}

}  // namespace
}  // namespace cairn::solvers::tree_decomposition_test
