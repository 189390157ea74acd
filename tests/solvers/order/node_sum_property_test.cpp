#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/order/internal/papers/node_sum.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/core/order_cases.h"
#include "cairn/tests/reference/reference_order.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::core::node_sum_property_test {
namespace {

using solvers::NodeSumGraph;
using solvers::NodeSumReduction;
using solvers::reduce_to_node_sum;
using tests::NodeSumCase;
using tests::Order;
using tests::Random;
using tests::random_eager_order;
using tests::random_node_sum;
using tests::random_node_sum_graph;
using tests::random_order;
using tests::show;
using tests::Values;

/// Returns whether the profile `a` dominates the profile `b`: two pointers can go through both such that the value of
/// `a` is never above that of `b`. The reference computes this literally. Other tests cover core::dominates().
bool dominates_literally(const Values& a, const Values& b) { return reference::dominates_by_pointers(a, b); }

TEST_CASE("A node-sum graph is its weights and its distinct edges", "[node_sum]") {
  CHECK(NodeSumGraph().node_count() == 0);
  CHECK(NodeSumGraph().edge_count() == 0);
  Random random(61);
  for (int i = 0; i < 3000; ++i) {
    const NodeSumCase parts = random_node_sum(random, 0, 12);
    const NodeSumGraph graph(parts.weights, parts.edges);
    INFO(show(graph));
    const std::set<NodeSumGraph::Edge> edges(parts.edges.begin(), parts.edges.end());
    REQUIRE(graph.node_count() == static_cast<NodeId>(parts.weights.size()));
    REQUIRE(graph.edge_count() == static_cast<std::int64_t>(edges.size()));
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      REQUIRE(graph.weight(v) == parts.weights[static_cast<std::size_t>(v)]);
      Order predecessors, successors;
      for (const auto& [from, to] : edges) {
        if (to == v) predecessors.push_back(from);
        if (from == v) successors.push_back(to);
      }
      REQUIRE(Order(graph.predecessors(v).begin(), graph.predecessors(v).end()) == predecessors);
      REQUIRE(Order(graph.successors(v).begin(), graph.successors(v).end()) == successors);
    }
  }
}

TEST_CASE("A node-sum graph refuses unknown nodes and loops and cycles", "[node_sum]") {
  CHECK_THROWS_AS(NodeSumGraph({}, {{0, 0}}), InputError);
  CHECK_THROWS_AS(NodeSumGraph({1, 2}, {{0, 1}, {1, 0}}), InputError);
  Random random(62);
  for (int i = 0; i < 2000; ++i) {
    NodeSumCase parts = random_node_sum(random, 2, 10);
    const auto n = static_cast<NodeId>(parts.weights.size());
    const auto node = static_cast<NodeId>(random.below(n));
    const auto place = static_cast<std::ptrdiff_t>(random.below(static_cast<std::int64_t>(parts.edges.size()) + 1));
    NodeSumGraph::Edge bad{node, node};
    const NodeId unknown = random.pick(Order{-1, n, n + 5, -2147483647 - 1, 2147483647});
    switch (random.below(4)) {
      case 0:
        bad.first = unknown;
        break;
      case 1:
        bad.second = unknown;
        break;
      case 2: {
        // Walks along a path from `node`. An edge from the end of the path back to a node of the path closes a cycle.
        Order walk{node};
        const NodeSumGraph graph(parts.weights, parts.edges);
        while (!graph.successors(walk.back()).empty()) {
          const auto next = graph.successors(walk.back());
          walk.push_back(next[random.place(next)]);
        }
        bad = {walk.back(), random.pick(walk)};
        break;
      }
      default:
        break;
    }
    parts.edges.insert(parts.edges.begin() + place, bad);
    REQUIRE_THROWS_AS(NodeSumGraph(parts.weights, parts.edges), InputError);
  }
}

/// Returns `order` with one change: two steps are swapped, or one step is replaced, removed or added. The result may or
/// may not be a topological order.
Order changed(Random& random, Order order, NodeId nodes) {
  if (order.empty()) return {0};
  switch (random.below(5)) {
    case 0:
      std::swap(order[random.place(order)], order[random.place(order)]);
      break;
    case 1:
      order[random.place(order)] = order[random.place(order)];
      break;
    case 2:
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(random.place(order)));
      break;
    case 3:
      order.push_back(order[random.place(order)]);
      break;
    default:
      order[random.place(order)] = random.pick(Order{-1, nodes, nodes + 1, -2147483647 - 1, 2147483647});
  }
  return order;
}

TEST_CASE("is_schedule is Definition 2.1", "[node_sum]") {
  CHECK(is_schedule(NodeSumGraph(), Order{}));
  CHECK_FALSE(is_schedule(NodeSumGraph(), Order{0}));
  Random random(63);
  int schedules = 0;
  for (int i = 0; i < 6000; ++i) {
    const NodeSumGraph graph = random_node_sum_graph(random, 1, 9);
    Order order = random_order(random, graph);
    REQUIRE(reference::valid(graph, order));
    REQUIRE(is_schedule(graph, order));
    order = changed(random, order, graph.node_count());
    INFO(show(graph) << show(order));
    REQUIRE(is_schedule(graph, order) == reference::valid(graph, order));
    schedules += is_schedule(graph, order);
    random.shuffle(order);
    REQUIRE(is_schedule(graph, order) == reference::valid(graph, order));
  }
  CHECK(schedules > 300);
}

TEST_CASE("Profile and peak of node-sum schedules and of their prefixes", "[node_sum]") {
  CHECK(profile(NodeSumGraph(), Order{}) == Values{0});
  CHECK(peak(NodeSumGraph(), Order{}) == 0);
  Random random(64);
  for (int i = 0; i < 6000; ++i) {
    const NodeSumGraph graph = random_node_sum_graph(random, 0, 12);
    Order order = random_order(random, graph);
    if (random.chance(50)) order.resize(static_cast<std::size_t>(random.between(0, graph.node_count())));
    REQUIRE(reference::is_partial_schedule(graph, order));
    REQUIRE(profile(graph, order) == reference::profile(graph, order));
    REQUIRE(profile(graph, order).size() == order.size() + 1);
    REQUIRE(peak(graph, order) == reference::peak(graph, order));
    REQUIRE(peak(graph, order) >= 0);
  }
}

// The following tests check statements of section 3 of Jin et al., about cuts and partial schedules. A (topological)
// cut is a set of nodes that no edge enters. A partial schedule is a sequence of nodes of which every prefix is a cut.

TEST_CASE("Lemmas 3.3 and 3.6: cuts and partial schedules under union and intersection", "[node_sum]") {
  Random random(33);
  for (int i = 0; i < 2000; ++i) {
    const NodeSumGraph graph = random_node_sum_graph(random, 1, 8);
    const std::vector<reference::NodeSet> cuts = reference::cut_lattice(graph).cuts;
    std::size_t literal_cuts = 0;
    for (reference::NodeSet set = 0; set <= reference::first(graph.node_count()); ++set) {
      literal_cuts += reference::is_topological_cut(graph, set);
    }
    REQUIRE(cuts.size() == literal_cuts);
    const reference::NodeSet x = random.pick(cuts);
    const reference::NodeSet y = random.pick(cuts);
    REQUIRE(reference::is_topological_cut(graph, x & y));
    REQUIRE(reference::is_topological_cut(graph, x | y));
    Order sigma = random_order(random, graph), tau = random_order(random, graph);
    sigma.resize(static_cast<std::size_t>(random.between(0, graph.node_count())));
    tau.resize(static_cast<std::size_t>(random.between(0, graph.node_count())));
    REQUIRE(reference::is_partial_schedule(graph, reference::restricted(sigma, x)));
    REQUIRE(reference::is_partial_schedule(graph, reference::united(sigma, tau)));
  }
}

TEST_CASE("Lemma 3.13: a schedule is dominated by itself made to pass through a minimum cut", "[node_sum]") {
  Random random(313);
  std::int64_t passes = 0;
  for (int i = 0; i < 5000; ++i) {
    const NodeSumGraph graph = random_node_sum_graph(random, 1, 7);
    if (reference::topological_order_count(graph) > 800) continue;
    const std::vector<reference::NodeSet> cuts = reference::minimum_cuts(graph);
    reference::for_each_topological_order(graph, [&](const Order& tau) {
      const Values before = profile(graph, tau);
      for (const reference::NodeSet cut : cuts) {
        const Order through = reference::united(reference::restricted(tau, cut), tau);
        if (!dominates(profile(graph, through), before)) FAIL(show(graph) << show(tau) << " through " << cut);
        ++passes;
      }
    });
  }
  CHECK(passes > 150000);
}

TEST_CASE("Theorem 3.1: every node-sum graph has a dominant schedule", "[node_sum]") {
  Random random(314);
  int without_choice = 0;
  for (int i = 0; i < 3000; ++i) {
    const NodeSumGraph graph = random_node_sum_graph(random, 1, 8);
    const std::int64_t count = reference::topological_order_count(graph);
    if (count > 2000) continue;
    INFO(show(graph));
    const std::vector<Order> dominant = reference::dominant_orders(graph);
    REQUIRE_FALSE(dominant.empty());
    REQUIRE(peak(graph, dominant.front()) == reference::least_peak_over_orders(graph));
    without_choice += static_cast<std::int64_t>(dominant.size()) == count;
  }
  CHECK(without_choice < 2500);
}

TEST_CASE("Theorem 3.1 holds for computation graphs too", "[node_sum]") {
  Random random(315);
  for (int i = 0; i < 2000; ++i) {
    const Graph graph = tests::random_graph(random, {.max_nodes = 7});
    if (reference::topological_order_count(graph) > 800) continue;
    INFO(show(graph));
    const std::vector<Order> dominant = reference::dominant_orders(graph);
    REQUIRE_FALSE(dominant.empty());
    REQUIRE(reference::peak(graph, Schedule{dominant.front()}) == reference::least_peak_without_recomputation(graph));
  }
}

// The following tests check statements of section 4.1 of Jin et al., about eager schedules. An eager schedule runs a
// node of positive weight only when no node of weight 0 or less is ready.

TEST_CASE("Lemma 4.3: the eager schedule is one and dominates the schedule it is made from", "[node_sum]") {
  Random random(43);
  int changes = 0;
  for (int i = 0; i < 20000; ++i) {
    const NodeSumGraph graph = random_node_sum_graph(random, 0, 12);
    const Order order = random_order(random, graph), sooner = eager_schedule(graph, order);
    INFO(show(graph) << show(order) << " to " << show(sooner));
    REQUIRE(reference::valid(graph, sooner));
    REQUIRE(reference::eager(graph, sooner));
    REQUIRE(dominates_literally(reference::profile(graph, sooner), reference::profile(graph, order)));
    // Making a schedule eager moves only nodes of weight <= 0. So nodes of positive weight keep their order.
    const auto positive = [&](const Order& from) {
      Order nodes;
      std::copy_if(from.begin(), from.end(), std::back_inserter(nodes), [&](NodeId v) { return graph.weight(v) > 0; });
      return nodes;
    };
    REQUIRE(positive(sooner) == positive(order));
    changes += sooner != order;
    REQUIRE(reference::eager(graph, eager_schedule(graph, sooner)));
  }
  CHECK(changes > 7000);
}

/// Returns a small computation graph that at random has scratch, in-place nodes, kept nodes, several sources, and
/// several sinks.
Graph random_computation_graph(Random& random, NodeId max_nodes) {
  tests::RandomGraphOptions options{.min_nodes = 1, .max_nodes = max_nodes, .keep = random.chance(60)};
  options.in_place = random.chance(70);
  options.scratch = random.chance(70);
  return tests::random_graph(random, options);
}

TEST_CASE("reduce_to_node_sum is Algorithm 3", "[node_sum]") {
  CHECK(reduce_to_node_sum(Graph()).graph.node_count() == 0);
  Random random(45);
  int releases = 0;
  for (int i = 0; i < 5000; ++i) {
    const Graph graph = random_computation_graph(random, 14);
    INFO(show(graph));
    const NodeSumReduction reduction = reduce_to_node_sum(graph);
    const reference::Reduction expected = reference::reduction(graph);
    const auto n = static_cast<std::size_t>(graph.node_count());
    REQUIRE(reduction.start.size() == n);
    REQUIRE(reduction.finish.size() == n);
    REQUIRE(reduction.release.size() == n);

    std::map<NodeId, reference::PartOf> part_of;
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      const auto place = static_cast<std::size_t>(v);
      part_of[reduction.start[place]] = {v, reference::Part::start};
      part_of[reduction.finish[place]] = {v, reference::Part::finish};
      if (reduction.release[place] == kNoNode) continue;
      part_of[reduction.release[place]] = {v, reference::Part::release};
      ++releases;
    }
    REQUIRE(part_of.size() == expected.weights.size());
    REQUIRE(part_of.size() == static_cast<std::size_t>(reduction.graph.node_count()));
    REQUIRE(part_of.size() == reduction.origin.size());
    REQUIRE(part_of.begin()->first == 0);
    REQUIRE(part_of.rbegin()->first == reduction.graph.node_count() - 1);

    std::set<std::pair<reference::PartOf, reference::PartOf>> edges;
    for (const auto& [node, part] : part_of) {
      REQUIRE(expected.weights.count(part) == 1);
      REQUIRE(reduction.graph.weight(node) == expected.weights.at(part));
      REQUIRE(reduction.origin[static_cast<std::size_t>(node)] == part.first);
      if (part.second != reference::Part::start) REQUIRE(reduction.graph.weight(node) <= 0);
      if (part.second == reference::Part::start) REQUIRE(reduction.graph.weight(node) >= 0);
      for (const NodeId next : reduction.graph.successors(node)) edges.insert({part, part_of.at(next)});
    }
    REQUIRE(edges == expected.edges);
  }
  CHECK(releases > 5000);
}

/// The reduction splits each computation node into a start node and other nodes. Returns the computation nodes in the
/// order in which `order` runs their start nodes.
Order started(const NodeSumReduction& reduction, const Order& order) {
  Order nodes;
  for (const NodeId node : order) {
    const NodeId v = reduction.origin[static_cast<std::size_t>(node)];
    if (reduction.start[static_cast<std::size_t>(v)] == node) nodes.push_back(v);
  }
  return nodes;
}

TEST_CASE("Lemma 4.4: an eager schedule and the order of its starts dominate each other", "[node_sum]") {
  Random random(44);
  for (int i = 0; i < 15000; ++i) {
    const Graph graph = random_computation_graph(random, 9);
    const NodeSumReduction reduction = reduce_to_node_sum(graph);
    const Order order = random_eager_order(random, reduction.graph);
    REQUIRE(reference::eager(reduction.graph, order));
    const Order starts = started(reduction, order);
    INFO(show(graph) << show(order) << " starts " << show(starts));
    REQUIRE(reference::valid(graph, Schedule{starts}));
    const Values summed = reference::profile(reduction.graph, order);
    const Values bytes = reference::profile(graph, starts);
    REQUIRE(dominates_literally(summed, bytes));
    REQUIRE(dominates_literally(bytes, summed));
    REQUIRE(peak(reduction.graph, order) == reference::peak(graph, Schedule{starts}));
  }
}

TEST_CASE("Lemma 4.5: to a node-sum schedule that dominates", "[node_sum]") {
  Random random(450);
  for (int i = 0; i < 10000; ++i) {
    const Graph graph = random_computation_graph(random, 10);
    const NodeSumReduction reduction = reduce_to_node_sum(graph);
    const Schedule schedule{random_order(random, graph)};
    const Order order = to_node_sum(graph, reduction, schedule);
    INFO(show(graph) << show(schedule.steps) << " to " << show(order));
    REQUIRE(reference::valid(reduction.graph, order));
    const Values summed = reference::profile(reduction.graph, order);
    const Values bytes = reference::profile(graph, schedule.steps);
    REQUIRE(dominates_literally(summed, bytes));
    // The node-sum order runs the start nodes in the order of the schedule. So converting it back must give the same
    // schedule.
    REQUIRE(started(reduction, order) == schedule.steps);
    REQUIRE(from_node_sum(reduction, order) == schedule);
    REQUIRE(dominates_literally(bytes, summed));
  }
}

TEST_CASE("Lemma 4.5: from any node-sum schedule to one that dominates", "[node_sum]") {
  Random random(451);
  int strictly = 0;
  for (int i = 0; i < 10000; ++i) {
    const Graph graph = random_computation_graph(random, 10);
    const NodeSumReduction reduction = reduce_to_node_sum(graph);
    const Order order = random_order(random, reduction.graph);
    const Schedule schedule = from_node_sum(reduction, order);
    INFO(show(graph) << show(order) << " to " << show(schedule.steps));
    REQUIRE(schedule.steps == started(reduction, order));
    REQUIRE(reference::valid(graph, schedule));
    const Values summed = reference::profile(reduction.graph, order);
    const Values bytes = Evaluator(graph).profile(schedule.steps);
    REQUIRE(bytes == reference::profile(graph, schedule));
    REQUIRE(dominates_literally(bytes, summed));
    strictly += !dominates_literally(summed, bytes);
    // The proof of Lemma 4.5 first makes the node-sum schedule eager. The schedule that the eager one is converted to
    // must dominate the node-sum schedule, too.
    const Order sooner = eager_schedule(reduction.graph, order);
    REQUIRE(dominates_literally(Evaluator(graph).profile(from_node_sum(reduction, sooner).steps), summed));
  }
  CHECK(strictly > 1500);
}

TEST_CASE("A dominant schedule of the reduction is one of the computation graph", "[node_sum]") {
  Random random(452);
  for (int i = 0; i < 1500; ++i) {
    const Graph graph = random_computation_graph(random, 5);
    const NodeSumReduction reduction = reduce_to_node_sum(graph);
    if (reference::topological_order_count(reduction.graph) > 2000) continue;
    INFO(show(graph));
    const std::vector<Order> dominant = reference::dominant_orders(graph);
    const std::vector<Order> reduced = reference::dominant_orders(reduction.graph);
    REQUIRE_FALSE(dominant.empty());
    REQUIRE_FALSE(reduced.empty());
    REQUIRE(reference::least_peak_over_orders(reduction.graph) == reference::least_peak_over_orders(graph));
    for (const Order& order : reduced) {
      const Order from = from_node_sum(reduction, order).steps;
      REQUIRE(std::find(dominant.begin(), dominant.end(), from) != dominant.end());
    }
    for (const Order& order : dominant) {
      const Order to = to_node_sum(graph, reduction, Schedule{order});
      REQUIRE(std::find(reduced.begin(), reduced.end(), to) != reduced.end());
    }
  }
}

}  // namespace
}  // namespace cairn::core::node_sum_property_test
