#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/decomposition/elimination.h"
#include "cairn/solvers/decomposition/path_decomposition.h"
#include "cairn/solvers/decomposition/spine.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"
#include "cairn/solvers/decomposition/treewidth.h"
#include "cairn/solvers/remat/kumar/interleaved.h"
#include "cairn/solvers/remat/kumar/pw_remat.h"
#include "cairn/solvers/remat/kumar/tw_remat.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/kumar2019.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/decomposition/literal.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"
#include "cairn/tests/support/show.h"

/// Compares the library with the definitions and theorems of Kumar et al. (2019), as written in
/// tests/reference/kumar2019.h.
namespace cairn::tests::kumar2019::kumar2019_property_test {
namespace {

using solvers::SeparatorTree;
using solvers::TreeDecomposition;

/// Returns a random graph without scratch and without in-place outputs, which the paper does not have.
Graph plain_graph(Random& random, NodeId max_nodes) {
  return random_graph(random, {.max_nodes = max_nodes, .scratch = false, .in_place = false});
}

/// Returns a random path that is folded back and forth after every `fold` nodes. With some probability, a node also
/// reads the node beside it in the previous fold, or a node two or three steps before it.
Graph folded_path(Random& random, NodeId max_nodes, NodeId longest_fold) {
  const auto count = static_cast<NodeId>(random.between(8, max_nodes));
  const auto fold = static_cast<NodeId>(random.between(3, longest_fold));
  std::vector<core::Node> nodes;
  for (NodeId v = 0; v < count; ++v) {
    Nodes inputs;
    if (v > 0) inputs.insert(v - 1);
    if (v > 3 && random.chance(30)) inputs.insert(v - static_cast<NodeId>(random.between(2, 3)));
    const NodeId across = v / fold * fold - 1 - v % fold;
    if (across >= 0 && random.chance(80)) inputs.insert(across);
    nodes.push_back(make_node("", random.between(0, 9), {inputs.begin(), inputs.end()}, random.between(0, 4)));
  }
  return build_graph(nodes);
}

/// Returns a function that chooses the same separators as `tree`. For a component, it finds the part of the tree with
/// the same nodes and the same number of bags, and takes this part's separator. If several bags are equal to the
/// separator, it takes a bag whose removal leaves the components of the part's children. For a component without nodes,
/// it calls lemma3().
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
  for_each_seed(10'000, [](Random& random) {
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

    if (random.chance(33)) {  // only in a third of the cases, because the literal algorithm takes long
      const SeparatorTree separators = solvers::separator_tree(decomposition, graph.node_count());
      const Sequence sigma =
          without_annotations(tw_remat(graph, bags, static_cast<std::size_t>(options.k), separators_of(separators)));
      REQUIRE(core::reference::valid(graph, {sigma}));
      CHECK(solution.schedule.length() <= static_cast<std::int64_t>(sigma.size()));
      CHECK(solution.cost <= length(graph, sigma));
    }
    const Theorem5 bound = theorem5(graph, bags);
    CHECK(solution.cost <= bound.length);
    if (options.k == 1) CHECK(solution.peak <= bound.memory);
    if (options.k > static_cast<std::int64_t>(bags.bags.size())) {
      CHECK(solution.schedule.length() == graph.node_count());
    }
  });
}

/// Returns a random undirected graph. Its edges are stored from the lower to the higher node.
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

    // The order must give a decomposition even if ties are broken at random, noise is added to the scores, or the last
    // nodes (the core) become one bag.
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
    const solvers::Treewidth found = solvers::find_treewidth(undirected, {.limit = {.work = 2000}});
    CHECK(is_tree_decomposition(graph, literal(found.decomposition)));
    CHECK(width(sets(found.decomposition.bags)) == found.decomposition.width);
    CHECK(found.lower <= exact);
    CHECK(found.decomposition.width >= exact);
    found_exact += found.decomposition.width == exact;
    ++graphs;
  });
  CHECK(fill_exact * 2 * 100 >= graphs * 90);  // times 2, because only half of the graphs use min-fill
  CHECK(found_exact * 100 >= graphs * 99);
  CHECK(lower_total * 100 >= naive_lower_total * 98);
}

/// Returns a random k-tree. It is a clique of k nodes to which nodes are added one by one, each joined to a clique of k
/// earlier nodes. A k-tree is chordal and has treewidth k. Each of its nodes has at least k neighbours.
Digraph random_k_tree(Random& random, NodeId k, NodeId count) {
  Sequence label = numbers_below(count);
  random.shuffle(label);
  Digraph graph;
  std::vector<Sequence> cliques(1);  // cliques of k nodes
  for (NodeId v = 0; v < count; ++v) {
    graph.nodes.insert(label[v]);
    const Sequence clique = v < k ? cliques[0] : random.pick(cliques);
    for (const NodeId u : clique) graph.edges.insert({label[u], label[v]});
    if (v < k) cliques[0].push_back(v);
    for (std::size_t i = 0; v >= k && i < clique.size(); ++i) {
      cliques.push_back(clique);
      cliques.back()[i] = v;
    }
  }
  return graph;
}

TEST_CASE(
    "Kumar 2019: k-trees are decomposed without fill, and the lower bound proves it; their parts at most as wide") {
  for_each_seed(300, [](Random& random) {
    const auto k = static_cast<NodeId>(random.between(1, 8));
    Digraph graph = random_k_tree(random, k, k + 1 + static_cast<NodeId>(random.below(60)));
    CAPTURE(k, graph.edges);
    const solvers::Treewidth whole = solvers::find_treewidth(library(graph));
    CHECK(whole.decomposition.width == k);
    CHECK(whole.lower == k);
    CHECK(whole.by == "min-fill");
    CHECK(is_tree_decomposition(graph, literal(whole.decomposition)));

    const int percent = static_cast<int>(random.between(5, 60));
    std::erase_if(graph.edges, [&](const Edge&) { return random.chance(percent); });
    const solvers::Treewidth part = solvers::find_treewidth(library(graph), {.limit = {.work = 20000}});
    CHECK(part.lower <= k);
    CHECK(part.lower <= part.decomposition.width);
    CHECK(is_tree_decomposition(graph, literal(part.decomposition)));
  });
}

TEST_CASE("Kumar 2019: separators are balanced by bags, or leave two thirds of the bags where they halve the bytes") {
  for_each_seed(600, [](Random& random) {
    const Graph graph = random.chance(50) ? plain_graph(random, 40) : folded_path(random, 80, 20);
    const TreeDecomposition decomposition = solvers::min_fill_decomposition(graph);
    for (const solvers::Balance balance : {solvers::Balance::bags, solvers::Balance::bytes}) {
      const SeparatorTree tree = solvers::separator_tree(decomposition, graph, balance);
      CHECK(static_cast<std::size_t>(tree.parts.at(0).bags) == decomposition.bags.size());
      Nodes seen;
      for (std::size_t p = 0; p < tree.parts.size(); ++p) {
        const SeparatorTree::Part& part = tree.parts[p];
        for (const NodeId v : part.separator) {
          CHECK(seen.insert(v).second);
          CHECK(tree.home[v] == static_cast<std::int32_t>(p));
        }
        for (const std::int32_t child : part.children) {
          const std::int32_t bags = tree.parts[child].bags;
          CHECK((balance == solvers::Balance::bags ? 2 * bags <= part.bags : 3 * bags <= 2 * part.bags));
        }
        const auto inside = [&](NodeId v) { return part.begin <= tree.home[v] && tree.home[v] < part.end; };
        for (NodeId v = 0; v < graph.node_count(); ++v) {  // there must be no edge between two components
          for (const NodeId u : graph.predecessors(v)) {
            for (const std::int32_t child : part.children) {
              const auto below = [&](NodeId w) {
                return tree.parts[child].begin <= tree.home[w] && tree.home[w] < tree.parts[child].end;
              };
              if (below(v) && inside(u) && !below(u)) CHECK(tree.home[u] == static_cast<std::int32_t>(p));
              if (below(u) && inside(v) && !below(v)) CHECK(tree.home[v] == static_cast<std::int32_t>(p));
            }
          }
        }
      }
      CHECK(static_cast<NodeId>(seen.size()) == graph.node_count());
    }
  });
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
    CHECK(lemma1(literal(merged)).bags.size() == merged.bags.size());  // no two bags are left that could be merged

    auto& bags = decomposition.bags;
    for (std::int64_t changes = random.between(0, 2); changes > 0; --changes) {
      Nodes& bag = random.pick(bags);
      auto& tree = decomposition.tree;
      switch (random.below(4)) {
        case 0:
          if (!bag.empty()) bag.erase(random.pick(Sequence(bag.begin(), bag.end())));
          break;
        case 1:
          bag.insert(static_cast<NodeId>(random.below(graph.node_count())));
          break;
        case 2:
          if (!tree.empty()) tree.erase(tree.begin() + random.place(tree));
          break;
        default: {
          const auto a = random.place(bags);
          const auto b = random.place(bags);
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

solvers::PathDecomposition library_path(const Bags& bags) {
  solvers::PathDecomposition result;
  for (const Nodes& bag : bags) result.bags.emplace_back(bag.begin(), bag.end());
  result.width = width(bags);
  return result;
}

/// Returns the path decomposition that an order of the nodes gives. The order is topological, random, or of least
/// width.
Bags random_path_decomposition(Random& random, const Graph& graph) {
  const Digraph undirected = digraph(graph);
  Sequence order = topological(graph);
  if (random.chance(50)) {
    order = pathwidth(undirected).second;
  } else if (random.chance(50)) {
    random.shuffle(order);
  }
  return path_decomposition(undirected, order);
}

/// Returns an equivalent decomposition with unnecessary bags. Some bags are repeated. After some bags, it inserts a bag
/// with one of their nodes and with all nodes that occur on both sides.
Bags spread_out(Random& random, const Bags& bags) {
  Bags result;
  for (const Nodes& bag : bags) {
    for (std::int64_t times = random.chance(20) ? 2 : 1; times > 0; --times) result.push_back(bag);
    if (random.chance(20)) result.push_back({*bag.begin()});
  }
  Bags whole(result.size());  // puts each node into all bags between its first and its last bag
  for (const NodeId v : all_of(result)) {
    const auto [first, end] = interval(result, v);
    for (std::int64_t i = first; i <= end; ++i) whole[i].insert(v);
  }
  return whole;
}

TEST_CASE("Kumar 2019: path decompositions are decompositions, of the pathwidth where that is promised") {
  for_each_seed(2000, [](Random& random) {
    const Graph graph = plain_graph(random, 10);
    const Digraph undirected = digraph(graph);
    const int exact = pathwidth(undirected).first;
    CAPTURE(show(graph), exact);
    Sequence layout = topological(graph);
    random.shuffle(layout);
    const solvers::PathDecomposition of_layout = solvers::decomposition_of_layout(graph, layout);
    CHECK(is_path_decomposition(undirected, sets(of_layout.bags)));
    CHECK(of_layout.width == width(path_decomposition(undirected, layout)));
    for (const auto& found :
         {of_layout, solvers::path_decomposition(graph), solvers::exact_path_decomposition(graph)}) {
      CHECK(is_path_decomposition(undirected, sets(found.bags)));
      CHECK(width(sets(found.bags)) == found.width);
      CHECK(static_cast<NodeId>(found.bags.size()) <= graph.node_count());
      CHECK(found.width >= exact);
      CHECK(solvers::check_path_decomposition(graph, found) == "");
    }
    CHECK(solvers::path_decomposition(graph).width == exact);
    CHECK(solvers::exact_path_decomposition(graph).width == exact);

    Bags bags = spread_out(random, random_path_decomposition(random, graph));
    REQUIRE(is_path_decomposition(undirected, bags));
    const solvers::PathDecomposition reduced = solvers::drop_nested_bags(library_path(bags));
    CHECK(is_path_decomposition(undirected, sets(reduced.bags)));
    CHECK(reduced.width == width(bags));
    CHECK(static_cast<NodeId>(reduced.bags.size()) <= graph.node_count());
    const auto intervals = solvers::bag_intervals(library_path(bags), graph.node_count());
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      CHECK(interval(bags, v) == std::pair<std::int64_t, std::int64_t>(intervals[v].first, intervals[v].last));
    }
    // A node is added to a random bag or removed from it, which can make the decomposition invalid.
    Nodes& bag = random.pick(bags);
    const auto v = static_cast<NodeId>(random.below(graph.node_count()));
    if (bag.erase(v) == 0) bag.insert(v);
    if (bag.empty()) return;
    const std::string said = solvers::check_path_decomposition(graph, library_path(bags));
    CAPTURE(said, bags);
    CHECK(said.empty() == is_path_decomposition(undirected, bags));
  });
}

TEST_CASE("Kumar 2019: add_spine gives a spine, a decomposition with it and bags of at most 2 w + 3") {
  int hamiltonian = 0;
  for_each_seed(3000, [&](Random& random) {
    const Graph graph = plain_graph(random, 11);
    const Bags bags = spread_out(random, random_path_decomposition(random, graph));
    const solvers::Spine spine = solvers::add_spine(graph, library_path(bags));
    CAPTURE(show(graph), bags, spine.order);
    Digraph with_spine = digraph(graph);
    bool has_path = true;
    for (std::size_t i = 1; i < spine.order.size(); ++i) {
      has_path = !with_spine.edges.insert({spine.order[i - 1], spine.order[i]}).second && has_path;
    }
    CHECK(is_spine(with_spine, spine.order));
    CHECK(valid(graph, spine.order));
    CHECK(is_path_decomposition(with_spine, sets(spine.decomposition.bags)));
    CHECK(width(sets(spine.decomposition.bags)) == spine.decomposition.width);
    CHECK(spine.decomposition.width + 1 <= 2 * width(bags) + 3);
    // If a graph has a Hamiltonian path, this path is its only topological order.
    const Sequence order = topological(graph);
    const bool path = is_spine(digraph(graph), order);
    CHECK(solvers::hamiltonian_path(graph) == (path ? order : Sequence{}));
    CHECK(spine.added == !path);
    if (path) {
      CHECK(spine.order == order);
      CHECK(spine.decomposition.width == width(bags));
    }
    hamiltonian += has_path;
  });
  CHECK(hamiltonian > 100);
}

TEST_CASE("Kumar 2019: Merge, Condense and Flatten are those of the definitions") {
  for_each_seed(2000, [](Random& random) {
    Interleaved tuples;
    for (std::int64_t count = random.below(8); count > 0; --count) {
      Sequence sigma(random.below(4));
      for (NodeId& u : sigma) u = static_cast<NodeId>(random.below(9));
      tuples.insert({static_cast<NodeId>(random.below(9)), sigma});
    }
    solvers::InterleavedSchedule schedule;
    for (const auto& [x, sigma] : tuples) schedule.push_back({sigma, x});
    const auto literal_of = [](const solvers::InterleavedSchedule& of) {
      Interleaved result;
      for (const auto& tuple : of) result.insert({tuple.node, tuple.schedule});
      return result;
    };
    Sequence onto;
    for (const NodeId x : on(tuples)) {
      if (random.chance(60)) onto.push_back(x);
    }
    CHECK(literal_of(solvers::merge(schedule)) == merge(tuples));
    CHECK(solvers::flatten(schedule) == flatten(tuples));
    CHECK(literal_of(solvers::condense(onto, schedule)) == condense(Nodes(onto.begin(), onto.end()), tuples));
  });
}

/// Returns the graph with the edges of the spine added, and with nodes renumbered in the order of the spine.
Graph along_spine(const Graph& graph, const Sequence& spine) {
  std::vector<NodeId> place(spine.size());
  for (std::size_t i = 0; i < spine.size(); ++i) place[spine[i]] = static_cast<NodeId>(i);
  std::vector<core::Node> nodes;
  for (const NodeId v : spine) {
    Nodes inputs;
    for (const NodeId u : graph.predecessors(v)) inputs.insert(place[u]);
    if (place[v] > 0) inputs.insert(place[v] - 1);
    nodes.push_back(make_node("", graph.size(v), {inputs.begin(), inputs.end()}, graph.cost(v)));
  }
  return build_graph(nodes);
}

TEST_CASE("Kumar 2019: pw_remat is valid, within Theorem 22, and not longer than Algorithm 3 on the whole") {
  Theorem22 theorem;
  std::int64_t steps = 0, literal_steps = 0, graphs = 0;
  for_each_seed(3000, [&](Random& random) {
    const Graph graph = random.chance(80) ? plain_graph(random, 13) : folded_path(random, 40, 12);
    solvers::PwRematOptions options;
    options.k = random.chance(70) ? 1 : random.between(1, graph.node_count() + 1);
    options.retain = false;
    CAPTURE(options.k, show(graph));
    const solvers::Solution solution = solvers::pw_remat(graph, options);
    REQUIRE(core::reference::valid(graph, solution.schedule));
    CHECK(solution.peak == core::reference::peak(graph, solution.schedule));
    CHECK(solution.cost == length(graph, solution.schedule.steps));

    const solvers::Spine spine = solvers::add_spine(graph, solvers::path_decomposition(graph));
    const std::int64_t p = spine.decomposition.width + 1;
    const auto b = static_cast<std::int64_t>(spine.decomposition.bags.size());
    if (options.k > b) CHECK(solution.schedule.length() == graph.node_count());
    if (options.k > 1) return;
    CHECK(static_cast<double>(solution.schedule.length()) <= theorem.steps(p, b));
    CHECK(solution.peak <=
          Theorem22::memory(p, b) * (largest_inputs(graph) + largest_size(graph)) + size_of(graph, outputs(graph)));

    // Algorithm 3 runs with the same spine and bags. It computes the last node of the spine, which depends on all other
    // nodes. In all, the library's schedules may have at most 5% more steps than those of Algorithm 3.
    std::vector<NodeId> place(spine.order.size());
    for (std::size_t i = 0; i < spine.order.size(); ++i) place[spine.order[i]] = static_cast<NodeId>(i);
    Bags bags;
    for (const auto& bag : spine.decomposition.bags) {
      bags.emplace_back();
      for (const NodeId v : bag) bags.back().insert(place[v]);
    }
    const Graph numbered = along_spine(graph, spine.order);
    REQUIRE(is_path_decomposition(digraph(numbered), bags));
    core::Schedule literal;
    for (const NodeId v : Algorithm3(numbered).schedule(bags)) literal.steps.push_back(spine.order[v]);
    REQUIRE(core::reference::valid(graph, literal));
    literal_steps += core::drop_unread(graph, literal).length();
    steps += solution.schedule.length();
    ++graphs;
  });
  CHECK(graphs > 1000);
  CHECK(steps * 100 <= literal_steps * 105);
}

TEST_CASE("Kumar 2019: Theorems 5 and 22 on larger graphs") {
  Theorem22 theorem22;
  int by_trees = 0;
  for_each_seed(60, [&](Random& random) {
    const Graph graph = folded_path(random, 200, 80);
    CAPTURE(graph.node_count());
    const std::int64_t kept = size_of(graph, outputs(graph));

    const solvers::TreeDecomposition tree = solvers::min_fill_decomposition(graph);
    solvers::TwRematOptions tw;
    tw.decomposition = &tree;
    tw.k = 1;
    tw.retain = false;
    const Theorem5 theorem5 = kumar2019::theorem5(graph, literal(tree));
    try {
      const solvers::Solution by_tree = solvers::tw_remat(graph, tw);
      const core::Evaluation of_tree = core::evaluate(graph, by_tree.schedule);
      REQUIRE(of_tree.valid());
      CHECK(by_tree.peak == of_tree.peak);
      CHECK(by_tree.peak <= theorem5.memory);
      CHECK(by_tree.cost <= theorem5.length);
      ++by_trees;
    } catch (const core::InputError&) {
      // The schedule has more steps than the solver is willing to write out.
    }

    solvers::PwRematOptions pw;
    pw.k = 1;
    pw.retain = false;
    const solvers::Spine spine = solvers::add_spine(graph, solvers::path_decomposition(graph));
    const auto p = spine.decomposition.width + 1, b = static_cast<std::int32_t>(spine.decomposition.bags.size());
    const solvers::Solution by_path = solvers::pw_remat(graph, pw);
    const core::Evaluation of_path = core::evaluate(graph, by_path.schedule);
    REQUIRE(of_path.valid());
    CHECK(by_path.peak == of_path.peak);
    CHECK(by_path.peak <= Theorem22::memory(p, b) * (largest_inputs(graph) + largest_size(graph)) + kept);
    CHECK(static_cast<double>(by_path.schedule.length()) <= theorem22.steps(p, b));
  });
  CHECK(by_trees >= 30);
}

TEST_CASE("Kumar 2019: keeping values where the budget has room raises neither the peak nor the cost") {
  std::int64_t cheaper = 0;
  for_each_seed(600, [&](Random& random) {
    const Graph graph = random.chance(50) ? plain_graph(random, 16) : folded_path(random, 40, 12);
    const std::int64_t k = random.chance(50) ? 1 : random.between(1, graph.node_count() + 1);
    CAPTURE(k, show(graph));
    const auto check = [&](auto solve, auto options) {
      options.k = k;
      options.retain = false;
      const solvers::Solution plain = solve(graph, options);
      options.retain = true;
      if (random.chance(70)) options.budget = plain.peak;
      const solvers::Solution kept = solve(graph, options);
      require_measured(graph, kept);
      CHECK(kept.peak <= plain.peak);
      CHECK(kept.cost <= plain.cost);
      cheaper += kept.cost < plain.cost;
    };
    check(solvers::tw_remat, solvers::TwRematOptions());
    check(solvers::pw_remat, solvers::PwRematOptions());
  });
  CHECK(cheaper > 0);
}

TEST_CASE("Kumar 2019: the curve of TWRemat(k) and the streamed schedule are those of each k") {
  for_each_seed(400, [](Random& random) {
    const Graph graph = random.chance(50) ? plain_graph(random, 16) : folded_path(random, 40, 12);
    CAPTURE(show(graph));
    solvers::TwRematOptions options;
    options.retain = false;
    const std::vector<solvers::TwPoint> points = solvers::tw_sweep(graph, options, 6);
    REQUIRE(!points.empty());
    // The first point is NoRemat, which runs each node once.
    CHECK(points.front().cost == length(graph, topological(graph)));
    CHECK(points.back().k == 1);
    for (const solvers::TwPoint& point : points) {
      options.k = point.k;
      CAPTURE(point.k);
      const solvers::Solution solution = solvers::tw_remat(graph, options);
      CHECK(solution.peak == point.peak);
      CHECK(solution.cost == point.cost);
      CHECK(solution.schedule.length() == point.steps);
      CHECK(point.steps <= point.length);
      core::Schedule streamed;
      const solvers::TwPoint written = solvers::stream_tw_remat(graph, options, [&](std::span<const NodeId> steps) {
        streamed.steps.insert(streamed.steps.end(), steps.begin(), steps.end());
      });
      CHECK(streamed == solution.schedule);
      CHECK(written.steps == point.steps);
    }
  });
}

}  // namespace
}  // namespace cairn::tests::kumar2019::kumar2019_property_test
