#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/core/order_cases.h"
#include "cairn/tests/reference/reference_order.h"
#include "cairn/tests/support/random_graph.h"

// Tests dominance between memory profiles, and what Jin et al. state about it. A profile a dominates a profile b if two
// pointers can go from their beginnings to their ends such that the value of a is never above that of b (Definition 2.3
// of Jin et al.).
namespace cairn::core::dominance_property_test {
namespace {

using solvers::NodeSumGraph;
using tests::near_dominated;
using tests::near_values;
using tests::Order;
using tests::Random;
using tests::random_values;
using tests::show;
using tests::Values;

/// Checks that Definitions 2.3 and 2.4 of Jin et al. and both overloads of dominates() agree on `a` and `b`. Returns
/// whether `a` dominates `b`.
bool checked_dominance(const Values& a, const Values& b) {
  const bool expected = reference::dominates_by_pointers(a, b);
  INFO(show(a) << " against " << show(b) << ", by pointers: " << expected);
  REQUIRE(reference::dominates_by_extremes(a, b) == expected);
  REQUIRE(dominates(a, b) == expected);
  REQUIRE(dominates(canonical(a), canonical(b)) == expected);
  return expected;
}

TEST_CASE("Lemma 2.5: both definitions of dominance and both fast tests agree", "[dominance]") {
  Random random(25);
  int count = 0, dominated = 0;
  const auto check = [&](const Values& a, const Values& b) {
    ++count;
    dominated += checked_dominance(a, b);
  };
  for (int i = 0; i < 30000; ++i) {
    const Values a = random_values(random, 10);
    check(a, random_values(random, 10));
    check(a, near_dominated(random, a));
    check(near_values(random, a), a);
    check(a, near_values(random, a));
  }
  CHECK(dominated > count / 5);
  CHECK(dominated < count * 4 / 5);
}

TEST_CASE("Lemma 2.5 for all short sequences of three values", "[dominance]") {
  std::vector<Values> all;
  tests::for_each_sequence(2, 4, [&](const Values& values) { all.push_back(values); });
  REQUIRE(all.size() == 3 + 9 + 27 + 81);
  for (const Values& a : all) {
    for (const Values& b : all) checked_dominance(a, b);
  }
}

TEST_CASE("Dominance of long sequences", "[dominance]") {
  Random random(251);
  int dominated = 0;
  for (int i = 0; i < 300; ++i) {
    const Values a = random_values(random, 200);
    for (const Values& b : {near_dominated(random, a), near_values(random, a), random_values(random, 200)}) {
      for (const auto& [first, second] : {std::pair{a, b}, std::pair{b, a}}) {
        const bool expected = reference::dominates_by_pointers(first, second);
        INFO(show(first) << " against " << show(second));
        REQUIRE(dominates(first, second) == expected);
        REQUIRE(dominates(canonical(first), canonical(second)) == expected);
        dominated += expected;
      }
    }
  }
  CHECK(dominated > 200);
}

TEST_CASE("Dominance of the widest values that profiles have", "[dominance]") {
  std::vector<Values> all;
  tests::for_each_wide_sequence(4, [&](const Values& values) { all.push_back(values); });
  Random random(252);
  for (int i = 0; i < 2000; ++i) checked_dominance(random.pick(all), random.pick(all));
}

TEST_CASE("Lemma 2.6: concatenation preserves dominance", "[dominance]") {
  Random random(26);
  const auto joined_values = [](Values a, const Values& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  int cases = 0;
  while (cases < 20000) {
    const Values a1 = random_values(random, 6), a2 = random_values(random, 6);
    const Values b1 = near_dominated(random, a1), b2 = near_dominated(random, a2);
    if (!dominates(a1, b1) || !dominates(a2, b2)) continue;
    INFO(show(a1) << show(a2) << " against " << show(b1) << show(b2));
    REQUIRE(checked_dominance(joined_values(a1, a2), joined_values(b1, b2)));
    ++cases;
  }
}

TEST_CASE("Lemma 2.7: dominance is reflexive and transitive", "[dominance]") {
  Random random(27);
  int chains = 0;
  for (int i = 0; i < 30000; ++i) {
    const Values a = random_values(random, 7);
    REQUIRE(dominates(a, a));
    REQUIRE(dominates(canonical(a), canonical(a)));
    const Values b = random.chance(70) ? near_dominated(random, a) : random_values(random, 7);
    const Values c = near_dominated(random, b);
    if (!dominates(a, b) || !dominates(b, c)) continue;
    ++chains;
    INFO(show(a) << show(b) << show(c));
    REQUIRE(dominates(a, c));
  }
  CHECK(chains > 6000);
}

TEST_CASE("What dominates has the lower peak and starts and ends and dips lower", "[dominance]") {
  Random random(28);
  for (int i = 0; i < 5000; ++i) {
    const Values a = random_values(random, 8), b = near_dominated(random, a);
    if (!dominates(a, b)) continue;
    INFO(show(a) << " against " << show(b));
    REQUIRE(a.front() <= b.front());
    REQUIRE(a.back() <= b.back());
    REQUIRE(*std::max_element(a.begin(), a.end()) <= *std::max_element(b.begin(), b.end()));
    REQUIRE(*std::min_element(a.begin(), a.end()) <= *std::min_element(b.begin(), b.end()));
  }
}

// Jin et al. do not print the edges of this example. The node weights follow from the profiles in their text. The text
// also gives two orders of the subgraph v2..v7, and says that all nodes come after v1. The simplest edges that fit are
// two parallel nodes between v4 and v7, and a branch v8 -> v9.
TEST_CASE("Example 2.2: the dominant order of a subgraph can be extended and one that is not cannot", "[dominance]") {
  enum : NodeId { v1, v2, v3, v4, v5, v6, v7, v8, v9 };
  const NodeSumGraph graph({0, 10, -9, 4, -3, 4, -3, 9, -5},
                           {{v1, v2}, {v2, v3}, {v3, v4}, {v4, v5}, {v4, v6}, {v5, v7}, {v6, v7}, {v1, v8}, {v8, v9}});
  const Order optimal{v2, v3, v4, v6, v5, v7}, better{v2, v3, v4, v5, v6, v7};
  const Values optimal_profile{0, 10, 1, 5, 9, 6, 3}, better_profile{0, 10, 1, 5, 2, 6, 3};
  CHECK(profile(graph, optimal) == optimal_profile);
  CHECK(profile(graph, better) == better_profile);
  CHECK(dominates(better_profile, optimal_profile));
  CHECK_FALSE(dominates(optimal_profile, better_profile));
  const NodeSumGraph part({10, -9, 4, -3, 4, -3}, {{0, 1}, {1, 2}, {2, 3}, {2, 4}, {3, 5}, {4, 5}});
  CHECK(reference::dominant_orders(part) == std::vector<Order>{{0, 1, 2, 3, 4, 5}});
  CHECK(reference::least_peak_over_orders(part) == 10);

  // The paper prints this extension with v6 before v5, which contradicts the profile that the paper prints for it. That
  // profile also leaves out the step of v1.
  const Order extended{v1, v2, v3, v8, v9, v4, v5, v6, v7};
  CHECK(profile(graph, extended) == Values{0, 0, 10, 1, 10, 5, 9, 6, 10, 7});
  CHECK(peak(graph, extended) == 10);
  CHECK(reference::least_peak_over_orders(graph) == 10);
  int extensions = 0;
  reference::for_each_topological_order(graph, [&](const Order& order) {
    if (reference::restricted(order, reference::set_of(optimal)) != optimal) return;
    ++extensions;
    CHECK(peak(graph, order) > 10);
  });
  CHECK(extensions == 28);  // ways to insert v8 and v9, in this order, among the six nodes of `optimal`
}

// The tests above use node-sum graphs. The tests from here on use computation graphs.

tests::RandomGraphOptions small_graphs(NodeId max_nodes) { return {.max_nodes = max_nodes}; }

TEST_CASE("Lemma C.1: memory during a step is at least that before and after it", "[dominance]") {
  Random random(31);
  for (int i = 0; i < 1500; ++i) {
    const Graph graph = tests::random_graph(random, small_graphs(10));
    const Order order = tests::random_order(random, graph);
    const Values bytes = Evaluator(graph).profile(order);
    REQUIRE(reference::profile(graph, order) == bytes);
    for (std::size_t during = 1; during < bytes.size(); during += 2) {
      REQUIRE(bytes[during] >= std::max(bytes[during - 1], bytes[during + 1]));
    }
  }
}

/// Returns a random graph with one source and one sink. If `keep` is true, some nodes may be kept until the end.
Graph random_two_terminal_graph(Random& random, NodeId max_nodes, bool keep) {
  tests::RandomGraphOptions options = small_graphs(max_nodes - 2);
  options.min_nodes = 1;
  options.keep = keep;
  const Graph inner = tests::random_graph(random, options);
  GraphBuilder builder(inner);
  const NodeId source = builder.add(tests::make_node("source", random.between(0, 9)));
  const NodeId sink = builder.add(tests::make_node("sink", random.between(0, 9)));
  builder.node(sink).keep = keep && random.chance(30);
  builder.node(sink).scratch = random.between(0, 3);
  for (NodeId v = 0; v < inner.node_count(); ++v) {
    if (inner.inputs(v).empty()) builder.add_input(v, source);
    if (inner.readers(v).empty()) builder.add_input(sink, v);
  }
  return builder.build();
}

TEST_CASE("internal_profile is Definition 5.2", "[dominance]") {
  Random random(52);
  for (int i = 0; i < 3000; ++i) {
    const Graph graph = random_two_terminal_graph(random, 10, false);
    const Schedule schedule{tests::random_order(random, graph)};
    INFO(show(graph) << show(schedule.steps));
    const Values internal = internal_profile(graph, schedule);
    REQUIRE(internal == reference::internal_profile(graph, schedule.steps));
    REQUIRE(internal.size() == 2 * schedule.steps.size() - 1);
    Values outer = Evaluator(graph).profile(schedule.steps);
    REQUIRE(std::equal(internal.begin(), internal.end() - 1, outer.begin() + 2, outer.end() - 1));
    REQUIRE(internal.front() == graph.size(schedule.steps.front()));
    REQUIRE(internal.back() == graph.size(schedule.steps.back()));
  }
}

TEST_CASE("internal_profile of a single node is its size", "[dominance]") {
  for (const bool keep : {false, true}) {
    core::Node node = tests::make_node("only", 7);
    node.scratch = 5;
    node.keep = keep;
    CHECK(internal_profile(tests::build_graph({node}), Schedule{{0}}) == Values{7});
  }
}

TEST_CASE("internal_profile refuses schedules that are empty or invalid", "[dominance]") {
  Random random(53);
  CHECK_THROWS_AS(internal_profile(Graph{}, Schedule{}), InputError);
  for (int i = 0; i < 300; ++i) {
    const Graph graph = random_two_terminal_graph(random, 8, false);
    CHECK_THROWS_AS(internal_profile(graph, Schedule{}), InputError);
    const Schedule invalid = tests::random_invalid_schedule(random, graph);
    REQUIRE_THROWS_AS(internal_profile(graph, invalid), InputError);
  }
}

// The following tests are about linearization (section 5 of Jin et al.), which replaces an isolated subgraph by a path.

/// A random graph and the nodes of an isolated subgraph. The subgraph is everything between a source and a sink, and
/// only its sink is read from outside.
struct IsolatedCase {
  Graph graph;
  reference::NodeSet set = 0;
};
IsolatedCase random_isolated_case(Random& random, std::int64_t max_orders) {
  for (;;) {
    const Graph graph = random.chance(50) ? tests::random_graph(random, small_graphs(8))
                                          : random_two_terminal_graph(random, 8, random.chance(20));
    if (reference::topological_order_count(graph) > max_orders) continue;
    std::vector<reference::NodeSet> sets;
    for (reference::NodeSet set = 1; set <= reference::first(graph.node_count()); ++set) {
      if (reference::replaceable(graph, set)) sets.push_back(set);
    }
    const auto orders_of = [&](reference::NodeSet set) { return reference::topological_orders(graph, set).size(); };
    std::vector<reference::NodeSet> with_choice;
    std::copy_if(sets.begin(), sets.end(), std::back_inserter(with_choice),
                 [&](auto set) { return orders_of(set) > 1; });
    if (!with_choice.empty()) return {graph, random.pick(with_choice)};
    if (!sets.empty() && random.chance(10)) return {graph, random.pick(sets)};
  }
}

TEST_CASE("Lemma 5.3: a better order of an isolated subgraph can be exchanged for a worse one", "[dominance]") {
  Random random(530);
  std::int64_t exchanges = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto [graph, set] = random_isolated_case(random, 120);
    INFO(show(graph) << "set " << set);
    const std::vector<Order> orders = reference::topological_orders(graph);
    const std::vector<Order> inner = reference::topological_orders(graph, set);
    std::vector<Values> profiles;
    for (const Order& order : orders) profiles.push_back(reference::profile(graph, order));
    const auto contains_order = [s = set](const Order& order, const Order& part) {
      return reference::restricted(order, s) == part;
    };
    for (const Order& worse : inner) {
      const Order& better = random.pick(inner);
      if (!dominates(reference::internal_profile(graph, set, better), reference::internal_profile(graph, set, worse))) {
        continue;
      }
      for (std::size_t a = 0; a < orders.size(); ++a) {
        if (!contains_order(orders[a], worse)) continue;
        bool found = false;
        for (std::size_t b = 0; b < orders.size() && !found; ++b) {
          found = contains_order(orders[b], better) && dominates(profiles[b], profiles[a]);
        }
        INFO(show(orders[a]) << " with " << show(better));
        REQUIRE(found);
        ++exchanges;
      }
    }
  }
  CHECK(exchanges > 10000);
}

TEST_CASE("Lemma 5.4: linearizing an isolated subgraph by its dominant order loses nothing", "[dominance]") {
  Random random(540);
  int negative_scratch = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto [graph, set] = random_isolated_case(random, 400);
    const std::vector<Order> inner = reference::internally_dominant_orders(graph, set);
    REQUIRE_FALSE(inner.empty());
    const Order part = random.pick(inner);
    // linearized() throws if the scratch that Lemma C.3 computes is not permitted.
    const Graph path = reference::linearized(graph, part);
    INFO(show(graph) << "set " << set << " as " << show(part) << ": " << show(path));
    REQUIRE(reference::least_peak_without_recomputation(path) == reference::least_peak_without_recomputation(graph));
    for (const NodeId v : part) negative_scratch += path.scratch(v) < 0;

    const std::vector<Order> dominant = reference::dominant_orders(graph);
    REQUIRE_FALSE(dominant.empty());
    const Values best = reference::profile(graph, dominant.front());
    const std::vector<Order> dominant_on_path = reference::dominant_orders(path);
    REQUIRE_FALSE(dominant_on_path.empty());
    for (const Order& order : dominant_on_path) {
      REQUIRE(Evaluator(graph).profile(order) == Evaluator(path).profile(order));
      REQUIRE(dominates(reference::profile(graph, order), best));
    }
  }
  CHECK(negative_scratch > 1000);
}

// Lemma 5.4 says that an isolated subgraph can be replaced by a path in any of its dominant orders, without raising the
// least peak. The lemma requires that the subgraph alone satisfies Equation (1) of Jin et al., which limits negative
// scratch. This subgraph does not satisfy it, because the sink overwrites node 3, which is outside of the subgraph. So
// the internal profile ends with 9 bytes, above the 6 bytes during the sink's step. One pointer can wait at that end,
// so dominance ignores all differences below 9 bytes before it. Both `low` and `high` count as dominant, but replacing
// the subgraph by `high` raises the least peak.
TEST_CASE("Lemma 5.4 does not hold where the sink takes over storage from outside", "[dominance]") {
  std::vector<Node> nodes{tests::make_node("source", 0), tests::make_node("a", 3, {0}), tests::make_node("b", 3, {0}),
                          tests::make_node("outside", 9), tests::make_node("sink", 9, {1, 2, 3})};
  nodes[1].scratch = 3;
  nodes[3].scratch = 3;
  nodes[4].scratch = -9;
  nodes[4].inplace = 3;
  const Graph graph = tests::build_graph(nodes);
  const reference::NodeSet set = reference::set_of(Order{0, 1, 2, 4});
  REQUIRE(reference::isolated(graph, set));
  CHECK_FALSE(reference::replaceable(graph, set));
  const Order low{0, 1, 2, 4}, high{0, 2, 1, 4};
  CHECK(reference::internal_profile(graph, set, low) == Values{0, 6, 3, 6, 6, 6, 9});
  CHECK(reference::internal_profile(graph, set, high) == Values{0, 3, 3, 9, 6, 6, 9});
  CHECK(reference::internally_dominant_orders(graph, set) == std::vector<Order>{low, high});
  CHECK(reference::least_peak_without_recomputation(graph) == 15);
  CHECK(reference::least_peak_without_recomputation(reference::linearized(graph, low)) == 15);
  CHECK(reference::least_peak_without_recomputation(reference::linearized(graph, high)) == 18);
}

/// Returns a graph in which two or three branches lead from a source to a sink. The sink also reads a node outside of
/// the branches, and often overwrites the storage of that node.
Graph random_in_place_sink(Random& random) {
  const std::int64_t bound = random.pick(Values{3, 6, 10});
  std::vector<Node> nodes{tests::make_node("source", random.between(0, bound))};
  const auto add = [&](std::string name, std::int64_t size, Order inputs) {
    nodes.push_back(tests::make_node(std::move(name), size, std::move(inputs)));
    return static_cast<NodeId>(nodes.size()) - 1;
  };
  Order inputs;
  for (std::int64_t branch = random.between(2, 3); branch > 0; --branch) {
    NodeId tip = 0;
    for (std::int64_t length = random.between(1, 2); length > 0; --length) {
      tip = add("", random.between(0, bound), {tip});
      nodes.back().scratch = random.between(0, bound);
    }
    inputs.push_back(tip);
  }
  inputs.push_back(add("outside", random.between(bound, 3 * bound), {}));
  nodes.back().scratch = random.between(0, bound);
  std::int64_t freed = 0;
  for (const NodeId input : inputs) freed += nodes[static_cast<std::size_t>(input)].size;
  const NodeId sink = add("sink", random.between(0, 3 * bound), inputs);
  nodes.back().scratch = random.between(-std::min(freed, nodes.back().size), 0);
  if (random.chance(50)) add("after", random.between(0, bound), {sink});
  return tests::build_graph(nodes);
}

TEST_CASE("Lemma 5.4 holds for any sink if profiles are compared up to before it runs", "[dominance]") {
  Random random(541);
  int not_replaceable = 0, cases = 0;
  while (cases < 1000) {
    const Graph graph = random_in_place_sink(random);
    if (reference::topological_order_count(graph) > 150) continue;
    ++cases;
    const NodeId sink = graph.node_count() - (graph.name(graph.node_count() - 1) == "after" ? 2 : 1);
    const reference::NodeSet set = (reference::NodeSet{2} << sink) - 1 - (reference::NodeSet{1} << (sink - 1));
    REQUIRE(reference::isolated(graph, set));
    not_replaceable += !reference::replaceable(graph, set);
    const std::vector<Order> inner = reference::topological_orders(graph, set);
    std::vector<Values> profiles;
    for (const Order& order : inner) {
      profiles.push_back(reference::internal_profile(graph, set, order));
      profiles.back().resize(profiles.back().size() - 2);
    }
    const std::vector<std::size_t> best = reference::dominant_among(profiles);
    REQUIRE_FALSE(best.empty());
    const Graph path = reference::linearized(graph, inner[random.pick(best)]);
    INFO(show(graph) << "as " << show(path));
    const Values dominant = reference::profile(graph, reference::dominant_orders(graph).front());
    REQUIRE(dominates(reference::profile(graph, reference::dominant_orders(path).front()), dominant));
  }
  CHECK(not_replaceable > 150);
}

TEST_CASE("Lemma C.3: a path with the internal profile of an order", "[dominance]") {
  Random random(33);
  for (int i = 0; i < 2000; ++i) {
    const Graph graph = random_two_terminal_graph(random, 10, false);
    const Schedule schedule{tests::random_order(random, graph)};
    INFO(show(graph) << show(schedule.steps));
    const Graph path = reference::linearized(graph, schedule.steps);
    REQUIRE(reference::topological_order_count(path) == 1);
    REQUIRE(internal_profile(path, schedule) == internal_profile(graph, schedule));
    REQUIRE(Evaluator(path).profile(schedule.steps) == Evaluator(graph).profile(schedule.steps));
  }
}

}  // namespace
}  // namespace cairn::core::dominance_property_test
