#include <set>
#include <utility>
#include <vector>

#include "cairn/core/reference.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"
#include "cairn/solvers/remat/tw_remat.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/kumar2019.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"
#include "cairn/tests/support/show.h"

/// The library against the definitions and theorems of Kumar et al. (2019) as tests/support/kumar2019.h has them.
namespace cairn::tests::kumar2019 {
namespace {

using solvers::SeparatorTree;
using solvers::TreeDecomposition;

/// Without scratch and in-place outputs, which the paper does not have.
Graph plain_graph(Random& random, NodeId max_nodes) {
  return random_graph(random, {.max_nodes = max_nodes, .scratch = false, .in_place = false});
}

Bags sets(const std::vector<std::vector<NodeId>>& bags) {
  Bags result;
  for (const auto& bag : bags) result.emplace_back(bag.begin(), bag.end());
  return result;
}
Decomposition literal(const TreeDecomposition& decomposition) {
  Decomposition result{sets(decomposition.bags), {}};
  for (std::size_t a = 0; a < decomposition.tree.size(); ++a) {
    for (const std::int32_t b : decomposition.tree[a]) {
      if (a < static_cast<std::size_t>(b)) result.tree.push_back({a, static_cast<std::size_t>(b)});
    }
  }
  return result;
}
TreeDecomposition library(const Decomposition& decomposition) {
  TreeDecomposition result;
  for (const Nodes& bag : decomposition.bags) result.bags.emplace_back(bag.begin(), bag.end());
  result.tree.resize(result.bags.size());
  for (const auto& [a, b] : decomposition.tree) {
    result.tree[a].push_back(static_cast<std::int32_t>(b));
    result.tree[b].push_back(static_cast<std::int32_t>(a));
  }
  result.width = width(decomposition.bags);
  return result;
}

/// The separators that `tree` has: of a component, that of the part with its nodes and its number of bags. Bags whose
/// nodes are all in separators above are told apart by what remains without them.
ChooseSeparator separators_of(const SeparatorTree& tree) {
  using NodesAndBags = std::pair<Nodes, std::size_t>;
  const auto describe = [&tree](const SeparatorTree::Part& part) {
    NodesAndBags result{{}, static_cast<std::size_t>(part.bags)};
    for (NodeId v = 0; v < static_cast<NodeId>(tree.home.size()); ++v) {
      if (part.begin <= tree.home[v] && tree.home[v] < part.end) result.first.insert(v);
    }
    return result;
  };
  return [&tree, describe](const Decomposition& component) {
    const NodesAndBags whole{all_of(component.bags), component.bags.size()};
    if (whole.first.empty()) return lemma3(component);
    for (const SeparatorTree::Part& part : tree.parts) {
      if (describe(part) != whole) continue;
      std::multiset<NodesAndBags> children;
      for (const std::int32_t child : part.children) children.insert(describe(tree.parts[child]));
      const Nodes separator(part.separator.begin(), part.separator.end());
      for (std::size_t bag = 0; bag < component.bags.size(); ++bag) {
        if (component.bags[bag] != separator || !is_balanced_separator(component, bag)) continue;
        std::multiset<NodesAndBags> remain;
        for (const Decomposition& rest : without(component, bag)) {
          if (!all_of(rest.bags).empty()) remain.insert({all_of(rest.bags), rest.bags.size()});
        }
        if (remain == children) return bag;
      }
    }
    FAIL("no part of the separator tree is of this component's bags");
    return std::size_t{0};
  };
}

TEST_CASE("Kumar 2019: tw_remat(k) is Algorithm 1, not longer, and within Theorem 5") {
  for_each_seed(3000, [](Random& random) {
    const Graph graph = plain_graph(random, 16);
    const Digraph undirected = digraph(graph);
    TreeDecomposition decomposition = solvers::min_fill_decomposition(graph);
    if (random.chance(40)) {
      Sequence order = min_degree(undirected);
      if (random.chance(50)) random.shuffle(order);
      decomposition = library(lemma1(eliminate(undirected, order)));
    }
    REQUIRE(solvers::check_decomposition(graph, decomposition) == "");
    const Decomposition bags = literal(decomposition);
    solvers::TwRematOptions options;
    options.decomposition = &decomposition;
    options.k = random.chance(60) ? 1 : random.between(1, graph.node_count() + 1);
    options.retain = false;
    const solvers::Solution solution = solvers::tw_remat(graph, options);
    CAPTURE(options.k, show(graph));
    REQUIRE(core::reference::valid(graph, solution.schedule));
    CHECK(solution.peak == core::reference::peak(graph, solution.schedule));
    CHECK(solution.cost == length(graph, solution.schedule.steps));

    const SeparatorTree separators = solvers::separator_tree(decomposition, graph.node_count());
    const Sequence sigma =
        without_annotations(tw_remat(graph, bags, static_cast<std::size_t>(options.k), separators_of(separators)));
    REQUIRE(core::reference::valid(graph, {sigma}));
    CHECK(solution.schedule.length() <= static_cast<std::int64_t>(sigma.size()));
    CHECK(solution.cost <= length(graph, sigma));
    const Theorem5 bound = theorem5(graph, bags);
    CHECK(solution.cost <= bound.length);
    if (options.k == 1) CHECK(solution.peak <= bound.memory);
    if (options.k > static_cast<std::int64_t>(bags.bags.size())) {
      CHECK(solution.schedule.length() == graph.node_count());
    }
  });
}

TEST_CASE("Kumar 2019: min-fill decompositions are decompositions, of at most n bags and at least the treewidth") {
  int exact = 0, graphs = 0, naive_total = 0, total = 0;
  for_each_seed(2000, [&](Random& random) {
    const Graph graph = plain_graph(random, 11);
    const Digraph undirected = digraph(graph);
    const TreeDecomposition found = solvers::min_fill_decomposition(graph);
    CAPTURE(show(graph));
    REQUIRE(is_tree_decomposition(undirected, literal(found)));
    CHECK(width(sets(found.bags)) == found.width);
    CHECK(static_cast<NodeId>(found.bags.size()) <= graph.node_count());
    const int treewidth = kumar2019::treewidth(undirected).first;
    CHECK(found.width >= treewidth);
    exact += found.width == treewidth;
    ++graphs;
    naive_total += width(eliminate(undirected, min_fill(undirected)).bags);
    total += found.width;
  });
  CHECK(exact * 100 >= graphs * 95);
  CHECK(total <= naive_total * 101 / 100);  // ties are broken by degree here, by index there
}

}  // namespace
}  // namespace cairn::tests::kumar2019
