#include "cairn/solvers/order/internal/papers/caduceus.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/error.h"
#include "cairn/solvers/order/internal/papers/node_sum.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference_order.h"
#include "cairn/tests/solvers/order/caduceus_cases.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/show.h"

// Tests orders of caduceus graphs (Algorithm 6 and Corollary 7.9 of Jin et al.) against brute force over topological
// cuts. A caduceus is a path, the staff, with further paths, the bends, that leave and rejoin it. A topological cut is
// a set of nodes that contains all inputs of its nodes, i.e. a set of nodes that can have run.
namespace cairn::solvers::caduceus_test {
namespace {

using core::NodeId;
using core::reference::CutLattice;
using core::reference::OrderModel;
using solvers::NodeSumGraph;
using tests::Random;
namespace reference = core::reference;

/// Returns `count` random weights that are uniform in [least, most].
std::vector<std::int64_t> random_weights(Random& random, std::int64_t count, std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> weights;
  for (; count > 0; --count) weights.push_back(random.between(least, most));
  return weights;
}

Caduceus random_caduceus(Random& random, std::int64_t most_nodes) {
  const std::int64_t size = random.pick(std::vector<std::int64_t>{0, 1, 1, 2, 3, 10, 1000});
  const std::int64_t shift = random.chance(70) ? 0 : random.between(-size, size);
  const auto weights = [&](std::int64_t count) { return random_weights(random, count, shift - size, shift + size); };
  Caduceus caduceus;
  const std::int64_t staff = random.between(1, std::min<std::int64_t>(6, most_nodes));
  caduceus.staff = weights(staff);
  if (random.chance(30)) std::fill(caduceus.staff.begin(), caduceus.staff.end(), 0);
  std::int64_t left = random.between(0, most_nodes - staff);
  const std::int64_t longest = random.between(1, 5);
  while (staff > 1 && left > 0) {
    Caduceus::Bend bend{.from = static_cast<std::int32_t>(random.below(staff - 1))};
    bend.to = static_cast<std::int32_t>(random.between(bend.from + 1, staff - 1));
    if (random.chance(40)) {
      bend.from = 0;
      bend.to = static_cast<std::int32_t>(staff - 1);
    }
    bend.weights = weights(random.between(1, std::min(longest, left)));
    left -= static_cast<std::int64_t>(bend.weights.size());
    // Adds some bends twice.
    for (int copies = random.chance(20) ? 2 : 1; copies > 0; --copies) caduceus.bends.push_back(bend);
  }
  return caduceus;
}

std::string describe(const Caduceus& caduceus) {
  std::string text = "\n  staff " + tests::show(caduceus.staff) + "\n";
  for (const Caduceus::Bend& bend : caduceus.bends) {
    text += fmt::format("  bend from {} to {} {}\n", bend.from, bend.to, tests::show(bend.weights));
  }
  return text;
}

/// Builds the graph of a caduceus directly. Nodes are numbered along the staff, and afterwards bend by bend.
NodeSumGraph literal_graph(const Caduceus& caduceus) {
  std::vector<std::int64_t> weights = caduceus.staff;
  std::vector<NodeSumGraph::Edge> edges;
  for (NodeId v = 1; v < static_cast<NodeId>(caduceus.staff.size()); ++v) edges.push_back({v - 1, v});
  for (const Caduceus::Bend& bend : caduceus.bends) {
    NodeId tip = bend.from;
    for (const std::int64_t weight : bend.weights) {
      const auto node = static_cast<NodeId>(weights.size());
      weights.push_back(weight);
      edges.push_back({tip, node});
      tip = node;
    }
    edges.push_back({tip, bend.to});
  }
  return NodeSumGraph(weights, edges);
}

bool same(const NodeSumGraph& a, const NodeSumGraph& b) {
  if (a.node_count() != b.node_count() || a.edge_count() != b.edge_count()) return false;
  for (NodeId v = 0; v < a.node_count(); ++v) {
    const auto in_a = a.successors(v), in_b = b.successors(v);
    if (a.weight(v) != b.weight(v) || !std::equal(in_a.begin(), in_a.end(), in_b.begin(), in_b.end())) return false;
  }
  return true;
}

/// Returns `graph` with other node numbers: node numbering[k] becomes node k.
NodeSumGraph renumbered(const NodeSumGraph& graph, const std::vector<NodeId>& numbering) {
  std::vector<NodeId> place(numbering.size());
  std::vector<std::int64_t> weights;
  for (std::size_t k = 0; k < numbering.size(); ++k) {
    place[static_cast<std::size_t>(numbering[k])] = static_cast<NodeId>(k);
    weights.push_back(graph.weight(numbering[k]));
  }
  std::vector<NodeSumGraph::Edge> edges;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    for (const NodeId w : graph.successors(v)) {
      edges.push_back({place[static_cast<std::size_t>(v)], place[static_cast<std::size_t>(w)]});
    }
  }
  return NodeSumGraph(weights, edges);
}

TEST_CASE("a caduceus becomes a graph numbered along the staff and then bend by bend", "[order]") {
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    const Caduceus caduceus = random_caduceus(random, 12);
    if (!same(node_sum_graph(caduceus), literal_graph(caduceus))) FAIL(describe(caduceus));
  }
}

/// Returns what is wrong with the optimal or the dominant order of a small caduceus, or an empty text if both are
/// right.
std::string orders_defect(const Caduceus& caduceus) {
  const NodeSumGraph graph = literal_graph(caduceus);
  const CutLattice lattice = reference::cut_lattice(graph);
  const std::vector<NodeId> optimal = optimal_caduceus(caduceus), dominant = dominant_caduceus(caduceus);
  if (!solvers::is_schedule(graph, optimal)) return "no order " + tests::show(optimal);
  if (solvers::peak(graph, optimal) != reference::least_peak(lattice)) return "not optimal " + tests::show(optimal);
  if (!solvers::is_schedule(graph, dominant)) return "no order " + tests::show(dominant);
  if (!reference::dominates_all(solvers::profile(graph, dominant), lattice)) {
    return "not dominant " + tests::show(dominant);
  }
  return "";
}

/// Returns `count` weights from the lowest digits of `number` in base 3. Digit d gives the weight d - 1.
std::vector<std::int64_t> digits(int number, int count) {
  std::vector<std::int64_t> weights;
  for (; count > 0; --count, number /= 3) weights.push_back(number % 3 - 1);
  return weights;
}

TEST_CASE("every small caduceus with weights -1 and 0 and 1 is ordered right", "[order]") {
  const std::vector<int> powers{1, 3, 9, 27, 81, 243};
  const auto check = [](const Caduceus& caduceus) {
    const std::string defect = orders_defect(caduceus);
    if (!defect.empty()) FAIL(defect << describe(caduceus));
  };
  for (int length = 1; length <= 5; ++length) {
    for (int staff = 0; staff < 9; ++staff) {
      for (int bend = 0; bend < powers[static_cast<std::size_t>(length)]; ++bend) {
        check({digits(staff, 2), {{0, 1, digits(bend, length)}}});
      }
    }
  }
  for (int staff = 0; staff < 9; ++staff) {
    for (int bend = 0; bend < 81; ++bend) {
      for (const int length : {1, 2}) {
        check({digits(staff, 2), {{0, 1, digits(bend / 9, 2)}, {0, 1, digits(bend % 9, length)}}});
      }
    }
  }
  for (const auto& [from, to] : std::vector<std::pair<int, int>>{{0, 1}, {0, 2}, {1, 2}}) {
    for (int staff = 0; staff < 27; ++staff) {
      for (int bend = 0; bend < 27; ++bend) check({digits(staff, 3), {{from, to, digits(bend, 3)}}});
    }
  }
}

TEST_CASE("the order of least peak of a caduceus is that of brute force", "[order]") {
  Random random(2);
  for (int i = 0; i < 15'000; ++i) {
    const Caduceus caduceus = random_caduceus(random, i < 5000 ? 6 : 12);
    const NodeSumGraph graph = literal_graph(caduceus);
    const std::int64_t least = reference::least_peak(reference::cut_lattice(graph));
    const std::vector<NodeId> order = optimal_caduceus(caduceus);
    if (!solvers::is_schedule(graph, order) || solvers::peak(graph, order) != least) {
      FAIL("least peak " << least << " order " << tests::show(order) << describe(caduceus));
    }
  }
}

TEST_CASE("the dominant order of a caduceus dominates every order", "[order]") {
  Random random(3);
  for (int i = 0; i < 12'000; ++i) {
    const Caduceus caduceus = random_caduceus(random, i < 4000 ? 6 : 11);
    const NodeSumGraph graph = literal_graph(caduceus);
    const OrderModel model(graph);
    const std::vector<NodeId> order = dominant_caduceus(caduceus);
    if (!solvers::is_schedule(graph, order)) FAIL("no order " << tests::show(order) << describe(caduceus));
    if (!reference::dominates_all(solvers::profile(graph, order), reference::cut_lattice(model))) {
      const auto better = reference::find_undominated(solvers::profile(graph, order), model);
      FAIL(tests::show(order) << " does not dominate " << tests::show(better) << describe(caduceus));
    }
  }
}

TEST_CASE("on larger caduceus graphs the dominant order has the least peak and dominates random orders", "[order]") {
  Random random(4);
  for (int i = 0; i < 60; ++i) {
    const Caduceus caduceus = random_caduceus(random, 150);
    const NodeSumGraph graph = literal_graph(caduceus);
    const std::vector<NodeId> order = dominant_caduceus(caduceus);
    REQUIRE(solvers::is_schedule(graph, order));
    const std::vector<NodeId> optimal = optimal_caduceus(caduceus);
    REQUIRE(solvers::is_schedule(graph, optimal));
    REQUIRE(solvers::peak(graph, order) == solvers::peak(graph, optimal));
    REQUIRE(core::dominates(solvers::profile(graph, order), solvers::profile(graph, optimal)));
    for (int k = 0; k < 50; ++k) {
      std::vector<NodeId> other;
      std::vector<std::size_t> missing;
      std::vector<NodeId> ready;
      for (NodeId v = 0; v < graph.node_count(); ++v) {
        missing.push_back(graph.predecessors(v).size());
        if (missing.back() == 0) ready.push_back(v);
      }
      while (!ready.empty()) {
        random.shuffle(ready);
        other.push_back(ready.back());
        ready.pop_back();
        for (const NodeId w : graph.successors(other.back())) {
          if (--missing[static_cast<std::size_t>(w)] == 0) ready.push_back(w);
        }
      }
      REQUIRE(reference::dominates_by_pointers(solvers::profile(graph, order), solvers::profile(graph, other)));
    }
  }
}

TEST_CASE("a caduceus is found again under any numbering", "[order]") {
  Random random(5);
  for (int i = 0; i < 3000; ++i) {
    const Caduceus caduceus = random_caduceus(random, 12);
    const NodeSumGraph plain = literal_graph(caduceus);
    std::vector<NodeId> shuffled = tests::numbers_below(plain.node_count());
    random.shuffle(shuffled);
    const NodeSumGraph graph = renumbered(plain, shuffled);
    std::vector<NodeId> numbering;
    const Caduceus found = find_caduceus(graph, &numbering);
    INFO(describe(caduceus) << describe(found) << tests::show(numbering));
    REQUIRE(numbering.size() == static_cast<std::size_t>(graph.node_count()));
    REQUIRE(same(renumbered(graph, numbering), literal_graph(found)));
    REQUIRE(same(node_sum_graph(find_caduceus(graph)), literal_graph(found)));
  }
}

TEST_CASE("what is found in any graph is a caduceus with the same orders or an error that names a node", "[order]") {
  Random random(6);
  int found = 0, refused = 0;
  for (int i = 0; i < 6000; ++i) {
    const auto n = static_cast<NodeId>(random.between(1, 7));
    const int density = random.pick(std::vector<int>{10, 30, 50, 80});
    std::vector<NodeSumGraph::Edge> edges;
    for (NodeId v = 1; v < n; ++v) {
      if (random.chance(60)) edges.push_back({v - 1, v});
      for (NodeId u = 0; u < v; ++u) {
        if (random.chance(density)) edges.push_back({u, v});
      }
    }
    const NodeSumGraph graph(random_weights(random, n, -3, 3), edges);
    INFO(tests::show(graph));
    try {
      std::vector<NodeId> numbering;
      const Caduceus caduceus = find_caduceus(graph, &numbering);
      for (const Caduceus::Bend& bend : caduceus.bends) {
        REQUIRE(bend.from < bend.to);
        REQUIRE_FALSE(bend.weights.empty());
      }
      // find_caduceus() leaves out edges that follow from other edges. So the graphs can differ, but their topological
      // cuts and the memory after each cut must be the same.
      const NodeSumGraph expected = renumbered(graph, numbering);
      const NodeSumGraph literal = literal_graph(caduceus);
      REQUIRE(reference::cut_lattice(expected).cuts == reference::cut_lattice(literal).cuts);
      REQUIRE(reference::cut_lattice(expected).memory == reference::cut_lattice(literal).memory);
      ++found;
    } catch (const core::InputError& error) {
      const std::string message = error.what();
      const bool names_a_node = message.find_first_of("0123456789") != std::string::npos;
      REQUIRE(names_a_node);
      ++refused;
    }
  }
  CHECK(found > 500);
  CHECK(refused > 500);
}

TEST_CASE("generated caduceus graphs have the staff and the bends that were asked for", "[order]") {
  Random random(7);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto staff = static_cast<NodeId>(random.between(2, 10)), bends = static_cast<NodeId>(random.between(0, 8));
    const auto nodes = static_cast<NodeId>(staff + bends + (bends > 0 ? random.between(0, 30) : 0));
    const std::int64_t most = random.pick(std::vector<std::int64_t>{0, 1, 100});
    const Caduceus caduceus = tests::generate_caduceus(nodes, staff, bends, most, seed);
    REQUIRE(caduceus.staff.size() == static_cast<std::size_t>(staff));
    REQUIRE(caduceus.bends.size() == static_cast<std::size_t>(bends));
    std::vector<std::int64_t> weights = caduceus.staff;
    for (const Caduceus::Bend& bend : caduceus.bends) {
      REQUIRE(0 <= bend.from);
      REQUIRE(bend.from < bend.to);
      REQUIRE(bend.to < staff);
      REQUIRE_FALSE(bend.weights.empty());
      weights.insert(weights.end(), bend.weights.begin(), bend.weights.end());
    }
    REQUIRE(weights.size() == static_cast<std::size_t>(nodes));
    REQUIRE(std::accumulate(weights.begin(), weights.end(), std::int64_t{0}) >= 0);
    for (const std::int64_t weight : weights) REQUIRE((-most <= weight && weight <= most));
    REQUIRE(node_sum_graph(caduceus).node_count() == nodes);
    const Caduceus again = tests::generate_caduceus(nodes, staff, bends, most, seed);
    REQUIRE(again.staff == caduceus.staff);
    for (std::size_t b = 0; b < caduceus.bends.size(); ++b)
      REQUIRE(again.bends[b].weights == caduceus.bends[b].weights);
  }
}

TEST_CASE("malformed bends are refused", "[order]") {
  const std::vector<std::int64_t> staff{1, -1, 2};
  const std::vector<Caduceus::Bend> malformed{
      {1, 1, {3}}, {2, 1, {3}}, {-1, 1, {3}}, {0, 3, {3}}, {5, 6, {3}}, {0, 2, {}},
  };
  for (const Caduceus::Bend& bend : malformed) {
    INFO(bend.from << " to " << bend.to);
    const Caduceus caduceus{staff, {{0, 2, {1, -1}}, bend}};
    CHECK_THROWS_AS(optimal_caduceus(caduceus), core::InputError);
    CHECK_THROWS_AS(dominant_caduceus(caduceus), core::InputError);
  }
  CHECK_THROWS_AS(optimal_caduceus(Caduceus{{}, {{0, 1, {1}}}}), core::InputError);
  CHECK(optimal_caduceus(Caduceus{{4}, {}}) == std::vector<NodeId>{0});
  CHECK(dominant_caduceus(Caduceus{{4, -5, 3}, {}}) == std::vector<NodeId>{0, 1, 2});
}

}  // namespace
}  // namespace cairn::solvers::caduceus_test
