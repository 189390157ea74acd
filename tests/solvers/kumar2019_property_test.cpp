#include <set>
#include <utility>
#include <vector>

#include "cairn/core/random.h"
#include "cairn/core/reference.h"
#include "cairn/solvers/decomposition/elimination.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"
#include "cairn/solvers/decomposition/treewidth.h"
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

/// Any undirected graph, by edges from lower to higher nodes.
Digraph random_undirected(Random& random, NodeId max_nodes) {
  Digraph graph;
  const auto count = static_cast<NodeId>(random.between(1, max_nodes));
  const int percent = static_cast<int>(random.between(0, 90));
  for (NodeId v = 0; v < count; ++v) {
    graph.nodes.insert(v);
    for (NodeId u = 0; u < v; ++u) {
      if (random.chance(percent)) graph.edges.insert({u, v});
    }
  }
  return graph;
}
solvers::UndirectedGraph library(const Digraph& graph) {
  return {static_cast<NodeId>(graph.nodes.size()), {graph.edges.begin(), graph.edges.end()}};
}

TEST_CASE("Kumar 2019: min-fill and min-degree eliminate as defined, and the bounds hold the treewidth between them") {
  int fill_exact = 0, found_exact = 0, lower_total = 0, naive_lower_total = 0, graphs = 0;
  for_each_seed(2500, [&](Random& random) {
    const Digraph graph = random.chance(50) ? random_undirected(random, 10) : digraph(plain_graph(random, 11));
    const solvers::UndirectedGraph undirected = library(graph);
    const int exact = treewidth(graph).first;
    CAPTURE(graph.edges, exact);
    const auto rule = random.chance(50) ? solvers::EliminationRule::min_fill : solvers::EliminationRule::min_degree;
    const solvers::EliminationOrder order = solvers::elimination_order(undirected, {.rule = rule});
    const bool by_fill = rule == solvers::EliminationRule::min_fill;
    const Sequence expected = greedy_order(graph, [&](const std::map<NodeId, Nodes>& adjacent, NodeId v) {
      return std::pair(by_fill ? fill_in(adjacent, v) : 0, adjacent.at(v).size());
    });
    CHECK(order.nodes == expected);
    CHECK(order.width == width(eliminate(graph, expected).bags));
    if (by_fill) fill_exact += order.width == exact;

    // Random ties, noise, and a core that is one bag.
    core::Random ties(static_cast<std::uint64_t>(random.below(1000)));
    solvers::EliminationOptions options{.rule = rule, .random = &ties};
    options.noise = random.chance(50) ? 0 : static_cast<std::int32_t>(random.below(4));
    if (random.chance(50)) options.core_degree = static_cast<std::int32_t>(random.below(6));
    const solvers::EliminationOrder other = solvers::elimination_order(undirected, options);
    const TreeDecomposition decomposition = solvers::decomposition_of(undirected, other);
    CHECK(is_tree_decomposition(graph, literal(decomposition)));
    CHECK(width(sets(decomposition.bags)) == decomposition.width);
    CHECK(other.width == decomposition.width);
    CHECK(decomposition.bags.size() <= graph.nodes.size());
    CHECK(decomposition.width >= exact);

    const std::int32_t lower = solvers::treewidth_lower_bound(undirected);
    CHECK(lower <= exact);
    lower_total += lower;
    naive_lower_total += minor_min_width(graph);
    solvers::TreewidthOptions limited;
    limited.limit.work = 2000;
    const solvers::Treewidth found = solvers::find_treewidth(undirected, limited);
    CHECK(is_tree_decomposition(graph, literal(found.decomposition)));
    CHECK(width(sets(found.decomposition.bags)) == found.decomposition.width);
    CHECK(found.lower <= exact);
    CHECK(found.decomposition.width >= exact);
    found_exact += found.decomposition.width == exact;
    ++graphs;
  });
  CHECK(fill_exact * 2 * 100 >= graphs * 90);  // about half of the graphs are eliminated by min-fill
  CHECK(found_exact * 100 >= graphs * 99);
  CHECK(lower_total * 100 >= naive_lower_total * 98);
}

TEST_CASE("Kumar 2019: the validator of decompositions and Lemma 1 agree with the definitions") {
  int valid_ones = 0, graphs = 0;
  for_each_seed(2500, [&](Random& random) {
    const Graph graph = plain_graph(random, 11);
    const Digraph undirected = digraph(graph);
    Sequence order = min_fill(undirected);
    if (random.chance(50)) random.shuffle(order);
    Decomposition decomposition = eliminate(undirected, order);
    if (random.chance(50)) decomposition = lemma1(decomposition);
    const TreeDecomposition merged = solvers::merge_nested_bags(library(decomposition));
    CHECK(is_tree_decomposition(undirected, literal(merged)));
    CHECK(merged.width == width(decomposition.bags));
    CHECK(static_cast<NodeId>(merged.bags.size()) <= graph.node_count());
    CHECK(lemma1(literal(merged)).bags.size() == merged.bags.size());  // nothing is left to merge

    auto& bags = decomposition.bags;
    for (std::int64_t changes = random.between(0, 2); changes > 0; --changes) {
      Nodes& bag = bags[random.below(static_cast<std::int64_t>(bags.size()))];
      auto& tree = decomposition.tree;
      switch (random.below(4)) {
        case 0:
          if (!bag.empty()) bag.erase(random.pick(Sequence(bag.begin(), bag.end())));
          break;
        case 1:
          bag.insert(static_cast<NodeId>(random.below(graph.node_count())));
          break;
        case 2:
          if (!tree.empty()) tree.erase(tree.begin() + random.below(static_cast<std::int64_t>(tree.size())));
          break;
        default: {
          const auto a = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(bags.size())));
          const auto b = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(bags.size())));
          if (a != b) tree.push_back({a, b});
        }
      }
    }
    const std::string said = solvers::check_decomposition(graph, library(decomposition));
    CAPTURE(said, bags, decomposition.tree, show(graph));
    CHECK(said.empty() == is_tree_decomposition(undirected, decomposition));
    valid_ones += said.empty();
    ++graphs;
  });
  CHECK(valid_ones * 5 > graphs);
  CHECK(valid_ones * 5 < graphs * 4);
}

}  // namespace
}  // namespace cairn::tests::kumar2019
