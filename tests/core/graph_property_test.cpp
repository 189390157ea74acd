#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/graph.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::core::graph_property_test {
namespace {

using tests::build_graph;
using tests::make_node;
using tests::Random;
using tests::random_nodes;

constexpr std::int64_t kMostBytes = std::int64_t{1} << 62;

std::vector<NodeId> to_vector(std::span<const NodeId> nodes) { return {nodes.begin(), nodes.end()}; }

bool topological(const std::vector<Node>& nodes, const std::vector<NodeId>& order) {
  std::set<NodeId> before;
  for (const NodeId v : order) {
    for (const OutputRef input : nodes[static_cast<std::size_t>(v)].inputs) {
      if (before.count(input.node) == 0) return false;
    }
    before.insert(v);
  }
  return true;
}

/// Returns the order by Kahn's algorithm: each step runs the node of lowest index that has not run, but whose inputs
/// have all run.
std::vector<NodeId> kahn_by_index(const std::vector<Node>& nodes) {
  std::vector<NodeId> order;
  const auto ran = [&](OutputRef v) { return std::find(order.begin(), order.end(), v.node) != order.end(); };
  while (order.size() < nodes.size()) {
    for (NodeId v = 0; v < static_cast<NodeId>(nodes.size()); ++v) {
      const auto& inputs = nodes[static_cast<std::size_t>(v)].inputs;
      if (!ran(v) && std::all_of(inputs.begin(), inputs.end(), ran)) {
        order.push_back(v);
        break;
      }
    }
  }
  return order;
}

TEST_CASE("a graph says what its builder was told") {
  tests::for_each_seed(10000, [&](Random& random) {
    const std::vector<Node> nodes = random_nodes(random);
    GraphBuilder builder("name");
    for (const Node& node : nodes) builder.add(node);
    // An input that a node already has is dropped, whether add() or add_input() adds it again.
    for (NodeId v = 0; v < builder.node_count(); ++v) {
      for (const OutputRef input : nodes[static_cast<std::size_t>(v)].inputs) {
        if (random.chance(20)) builder.add_input(v, input);
      }
    }
    const Graph graph = builder.build();
    REQUIRE(builder.node_count() == 0);
    REQUIRE(graph.name() == "name");
    REQUIRE(graph.node_count() == static_cast<NodeId>(nodes.size()));

    std::int64_t edges = 0;
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      const Node& node = nodes[static_cast<std::size_t>(v)];
      REQUIRE(graph.name(v) == node.name);
      REQUIRE(graph.size(v) == node.size);
      REQUIRE(graph.cost(v) == node.cost);
      REQUIRE(graph.scratch(v) == node.scratch);
      REQUIRE(graph.keep(v) == node.keep);
      REQUIRE(graph.backward(v) == node.backward);
      REQUIRE(graph.forward(v) == node.forward);
      REQUIRE(graph.inplace(v) == node.inplace);
      REQUIRE(graph.op(v) == nullptr);
      REQUIRE(std::equal(graph.inputs(v).begin(), graph.inputs(v).end(), node.inputs.begin(), node.inputs.end()));
      std::vector<NodeId> readers;
      for (NodeId w = 0; w < graph.node_count(); ++w) {
        const auto& inputs = nodes[static_cast<std::size_t>(w)].inputs;
        if (std::find(inputs.begin(), inputs.end(), v) != inputs.end()) readers.push_back(w);
      }
      REQUIRE(to_vector(graph.readers(v)) == readers);
      REQUIRE(graph.required(v) == (node.keep || readers.empty()));
      edges += static_cast<std::int64_t>(readers.size());
    }
    REQUIRE(graph.edge_count() == edges);
    REQUIRE_FALSE(graph.order_was_given());
    const std::vector<NodeId> by_number = tests::numbers_below(graph.node_count());
    REQUIRE(to_vector(graph.input_order()) == (topological(nodes, by_number) ? by_number : kahn_by_index(nodes)));
  });
}

TEST_CASE("an order that is given is the input order") {
  tests::for_each_seed(1000, [&](Random& random) {
    const std::vector<Node> nodes = random_nodes(random);
    const std::vector<NodeId> order = random_schedule(random, build_graph(nodes), 0).steps;
    GraphBuilder builder;
    for (const Node& node : nodes) builder.add(node);
    builder.set_order(order);
    const Graph graph = builder.build();
    REQUIRE(graph.order_was_given());
    REQUIRE(to_vector(graph.input_order()) == order);

    // Swaps a node with one of its inputs that runs right before it. The resulting order must be refused.
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      const auto inputs = graph.inputs(order[i + 1]);
      if (std::find(inputs.begin(), inputs.end(), order[i]) == inputs.end()) continue;
      std::vector<NodeId> swapped = order;
      std::swap(swapped[i], swapped[i + 1]);
      for (const Node& node : nodes) builder.add(node);
      builder.set_order(swapped);
      REQUIRE_THROWS_AS(builder.build(), InputError);
      break;
    }
  });
}

TEST_CASE("a graph with other numbers is what the builder makes of them, and shares the rest") {
  tests::for_each_seed(1000, [](Random& random) {
    const Graph graph = tests::random_graph(random);
    GraphBuilder builder(graph);
    std::vector<std::int64_t> scratch, cost;
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      scratch.push_back(graph.scratch(v) < 0 ? graph.scratch(v) / 2 : random.below(1000));
      cost.push_back(random.below(1000));
      builder.node(v).scratch = scratch.back();
      builder.node(v).cost = cost.back();
    }
    const Graph built = builder.build(), changed = graph.with_scratch(scratch).with_costs(cost);
    REQUIRE(changed.fingerprint() == built.fingerprint());
    REQUIRE(evaluate(changed, baseline_schedule(changed)).peak == evaluate(built, baseline_schedule(built)).peak);
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      REQUIRE(changed.scratch(v) == scratch[v]);
      REQUIRE(changed.cost(v) == cost[v]);
      REQUIRE(&changed.name(v) == &graph.name(v));
      REQUIRE(changed.op(v) == graph.op(v));
    }
    if (graph.node_count() == 0) return;
    cost.back() = -1;
    REQUIRE_THROWS_AS(graph.with_costs(cost), InputError);
    scratch.back() = -graph.size(graph.node_count() - 1) - 1;
    REQUIRE_THROWS_AS(graph.with_scratch(scratch), InputError);
    scratch.back() = std::int64_t{1} << 62;
    if (graph.size(graph.node_count() - 1) > 0) REQUIRE_THROWS_AS(graph.with_scratch(scratch), InputError);
  });
}

TEST_CASE("aligned sizes") {
  tests::for_each_seed(2000, [&](Random& random) {
    const Graph graph = tests::random_graph(random);
    const std::int64_t alignment = random.pick(std::vector<std::int64_t>{1, 7, 8, 256});
    const Graph aligned = align_sizes(graph, alignment);
    REQUIRE(aligned.node_count() == graph.node_count());
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      REQUIRE(aligned.size(v) % alignment == 0);
      REQUIRE(aligned.size(v) >= graph.size(v));
      REQUIRE(aligned.size(v) < graph.size(v) + alignment);
      if (graph.scratch(v) >= 0) {
        REQUIRE(aligned.scratch(v) == align_up(graph.scratch(v), alignment));
      } else {
        REQUIRE(aligned.scratch(v) <= 0);
      }
      REQUIRE(aligned.cost(v) == graph.cost(v));
      REQUIRE(aligned.keep(v) == graph.keep(v));
      REQUIRE(aligned.inplace(v) == graph.inplace(v));
      REQUIRE(to_vector(aligned.inputs(v)) == to_vector(graph.inputs(v)));
    }
    REQUIRE(to_vector(aligned.input_order()) == to_vector(graph.input_order()));
    if (alignment == 1) REQUIRE(aligned.fingerprint() == graph.fingerprint());
  });
}

TEST_CASE("the fingerprint follows what memory and validity depend on, and nothing else") {
  tests::for_each_seed(2000, [&](Random& random) {
    const std::vector<Node> nodes = random_nodes(random);
    const Graph graph = build_graph(nodes);
    const std::string fingerprint = graph.fingerprint();
    REQUIRE(fingerprint.size() == 16);
    REQUIRE(std::all_of(fingerprint.begin(), fingerprint.end(), [](unsigned char c) { return std::isxdigit(c) != 0; }));
    const auto with = [&nodes](std::size_t place, const auto& change) {
      std::vector<Node> changed = nodes;
      change(changed[place]);
      return build_graph(changed).fingerprint();
    };
    const auto i = static_cast<std::size_t>(random.below(graph.node_count()));
    REQUIRE(with(i, [](Node&) {}) == fingerprint);
    REQUIRE(with(i, [](Node& node) { node.name += "x"; }) == fingerprint);
    REQUIRE(with(i, [](Node& node) { node.cost += 1; }) == fingerprint);
    REQUIRE(with(i, [](Node& node) { node.backward = !node.backward; }) == fingerprint);
    REQUIRE(with(i, [](Node& node) { node.size += 1; }) != fingerprint);
    REQUIRE(with(i, [](Node& node) { node.scratch += 1; }) != fingerprint);

    // If a node with a reader became kept, the reader's negative scratch could become illegal. So this check changes
    // only the last node of the order, which has no reader.
    const auto last = static_cast<std::size_t>(graph.input_order().back());
    REQUIRE(with(last, [](Node& node) { node.keep = !node.keep; }) != fingerprint);
    const Node& end = nodes[last];
    const auto other = static_cast<NodeId>(random.below(graph.node_count()));
    const bool new_edge = other != static_cast<NodeId>(last) &&
                          std::find(end.inputs.begin(), end.inputs.end(), other) == end.inputs.end();
    if (new_edge && std::all_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.scratch >= 0; })) {
      REQUIRE(with(last, [other](Node& node) { node.inputs.push_back(other); }) != fingerprint);
    }
    if (end.inplace == kNoNode && !end.inputs.empty()) {
      REQUIRE(with(last, [](Node& node) { node.inplace = node.inputs[0]; }) != fingerprint);
      REQUIRE(with(last, [](Node& node) { node.inputs.pop_back(); }) != fingerprint);
    }
  });
}

TEST_CASE("graphs with one fingerprint are the same to a schedule") {
  using NodeFacts = std::tuple<std::int64_t, std::int64_t, bool, NodeId, std::vector<NodeId>>;
  std::map<std::string, std::vector<NodeFacts>> known;
  tests::for_each_seed(10000, [&](Random& random) {
    const Graph graph = tests::random_graph(random, {.max_nodes = 4});
    std::vector<NodeFacts> facts;
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      std::vector<NodeId> inputs = to_vector(graph.inputs(v));
      std::sort(inputs.begin(), inputs.end());
      facts.emplace_back(graph.size(v), graph.scratch(v), graph.keep(v), graph.inplace(v), inputs);
    }
    const auto [entry, added] = known.emplace(graph.fingerprint(), facts);
    if (!added) REQUIRE(entry->second == facts);
  });
}

TEST_CASE("the empty graph") {
  const Graph graph;
  CHECK(graph.node_count() == 0);
  CHECK(graph.edge_count() == 0);
  CHECK(graph.input_order().empty());
  CHECK(graph.fingerprint() == GraphBuilder().build().fingerprint());
}

/// Checks that build() rejects the graph with a one-line message that contains each of `words`. Returns the message.
std::string check_refused(GraphBuilder& builder, const std::vector<std::string>& words) {
  const std::string message = tests::error_of([&] { builder.build(); });
  tests::check_line(message, words);
  return message;
}

std::string check_refused(const std::vector<Node>& nodes, const std::vector<std::string>& words) {
  GraphBuilder builder;
  for (const Node& node : nodes) builder.add(node);
  return check_refused(builder, words);
}

TEST_CASE("edges that cannot be") {
  SECTION("unknown input") {
    check_refused({make_node("alpha", 1, {7})}, {"alpha", "7"});
    check_refused({make_node("alpha", 1, {-1})}, {"alpha"});
  }
  SECTION("self-loop") { check_refused({make_node("other"), make_node("alpha", 1, {1})}, {"alpha"}); }
  SECTION("cycle") {
    check_refused({make_node("start"), make_node("alpha", 1, {0, 3}), make_node("beta", 1, {1}),
                   make_node("gamma", 1, {2}), make_node("end", 1, {3})},
                  {"alpha", "beta", "gamma", "cycle"});
  }
}

/// Returns `from` together with all nodes that read its output directly or through other nodes.
std::set<NodeId> reached_from(const std::vector<Node>& nodes, NodeId from) {
  std::set<NodeId> reached{from};
  for (std::size_t round = 0; round < nodes.size(); ++round) {
    for (NodeId v = 0; v < static_cast<NodeId>(nodes.size()); ++v) {
      for (const OutputRef input : nodes[static_cast<std::size_t>(v)].inputs) {
        if (reached.count(input.node) != 0) reached.insert(v);
      }
    }
  }
  return reached;
}

TEST_CASE("every random cycle is found, and the nodes that are named lie on one") {
  int cycles = 0;
  tests::for_each_seed(1000, [&](Random& random) {
    std::vector<Node> nodes = random_nodes(random, {.scratch = false, .in_place = false});
    // Makes names of which none is part of another name, so that a search in a message finds only whole names.
    for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].name = fmt::format("<{}>", i);
    const auto from = static_cast<NodeId>(random.below(static_cast<std::int64_t>(nodes.size())));
    const std::set<NodeId> reached = reached_from(nodes, from);
    if (reached.size() < 2) return;
    std::vector<NodeId> targets(reached.begin(), reached.end());
    targets.erase(std::find(targets.begin(), targets.end(), from));
    const NodeId to = random.pick(targets);
    // The test adds an edge from `to` back to `from`. The nodes on a cycle are then those that lie on a path from
    // `from` to `to`. They are found here, before the edge exists.
    std::set<NodeId> on_cycle;
    for (const NodeId v : reached) {
      if (reached_from(nodes, v).count(to) != 0) on_cycle.insert(v);
    }
    nodes[static_cast<std::size_t>(from)].inputs.push_back(to);
    const std::string message =
        check_refused(nodes, {nodes[static_cast<std::size_t>(from)].name, nodes[static_cast<std::size_t>(to)].name});
    for (NodeId v = 0; v < static_cast<NodeId>(nodes.size()); ++v) {
      if (message.find(nodes[static_cast<std::size_t>(v)].name) != std::string::npos) REQUIRE(on_cycle.count(v) == 1);
    }
    ++cycles;
  });
  CHECK(cycles > 500);
}

TEST_CASE("names") {
  check_refused({make_node("alpha"), make_node("beta"), make_node("alpha")}, {"alpha"});
  const Graph graph = build_graph({make_node(""), make_node("")});
  CHECK(graph.name(0) == "#0");
  CHECK(graph.name(1) == "#1");
}

TEST_CASE("numbers that cannot be") {
  Node alpha = make_node("alpha");
  SECTION("negative size") {
    alpha.size = -1;
    check_refused({alpha}, {"alpha", "-1"});
  }
  SECTION("negative cost") {
    alpha.cost = -2;
    check_refused({alpha}, {"alpha", "-2"});
  }
  SECTION("lowest size") {
    alpha.size = INT64_MIN;
    check_refused({alpha}, {"alpha"});
  }
  SECTION("sizes whose sum overflows") {
    check_refused({make_node("a", kMostBytes), make_node("b", 1)}, {});
    check_refused({make_node("a", INT64_MAX), make_node("b", INT64_MAX), make_node("c", 2)}, {});
    CHECK(build_graph({make_node("a", kMostBytes), make_node("b", 0)}).size(0) == kMostBytes);
  }
  SECTION("costs whose sum overflows") {
    check_refused({make_node("a", 0, {}, kMostBytes), make_node("b", 0, {}, 1)}, {});
    CHECK(build_graph({make_node("a", 0, {}, kMostBytes), make_node("b", 0, {}, 0)}).cost(0) == kMostBytes);
  }
}

TEST_CASE("negative scratch is legal down to what the node and its own inputs hold") {
  // Only gamma reads alpha (10 bytes) and beta (4 bytes). Delta (100 bytes) is also read by another node.
  // So the scratch of gamma may go down to minus the sum of alpha and beta, but not below minus the size of gamma. If
  // alpha is kept, only beta counts.
  const auto graph_with = [](std::int64_t scratch, std::int64_t size, bool keep_alpha) {
    std::vector<Node> nodes{make_node("alpha", 10), make_node("beta", 4), make_node("delta", 100),
                            make_node("gamma", size, {0, 1, 2}), make_node("end", 1, {2, 3})};
    nodes[0].keep = keep_alpha;
    nodes[3].inplace = 0;
    nodes[3].scratch = scratch;
    return nodes;
  };
  CHECK(build_graph(graph_with(-12, 12, false)).scratch(3) == -12);
  check_refused(graph_with(-13, 12, false), {"gamma"});
  CHECK(build_graph(graph_with(-14, 20, false)).scratch(3) == -14);
  check_refused(graph_with(-15, 20, false), {"gamma"});
  CHECK(build_graph(graph_with(-4, 20, true)).scratch(3) == -4);
  check_refused(graph_with(-5, 20, true), {"gamma"});
  check_refused(graph_with(INT64_MIN, 20, true), {"gamma"});
}

TEST_CASE("in place of something that is no input") {
  std::vector<Node> nodes{make_node("alpha", 1), make_node("beta", 1), make_node("gamma", 1, {0})};
  nodes[2].inplace = 1;
  check_refused(nodes, {"gamma"});
  nodes[2].inplace = 9;
  check_refused(nodes, {"gamma"});
}

TEST_CASE("orders that cannot be") {
  const std::vector<Node> nodes{make_node("alpha"), make_node("beta", 1, {0}), make_node("gamma", 1, {1})};
  const auto refuse = [&](const std::vector<NodeId>& order, const std::vector<std::string>& words) {
    GraphBuilder builder;
    for (const Node& node : nodes) builder.add(node);
    builder.set_order(order);
    check_refused(builder, words);
  };
  refuse({0, 1}, {"order"});
  refuse({}, {"order"});
  refuse({0, 1, 2, 2}, {"order"});
  refuse({0, 1, 1}, {"order", "beta"});
  refuse({0, 1, 3}, {"order"});
  refuse({0, 1, -1}, {"order"});
  refuse({0, 2, 1}, {"order", "gamma", "beta"});
}

TEST_CASE("an op that does not fit its node") {
  std::vector<Node> nodes{make_node("alpha", 8), make_node("beta", 8, {0})};
  Op relu;
  relu.kind = OpKind::relu;
  relu.shape = {2};
  relu.args = {Operand::node(0)};
  nodes[0].op = relu;
  nodes[0].op->kind = OpKind::scale;
  GraphBuilder builder;
  const std::int32_t data =
      builder.add_resident({.name = "x", .shape = {2}, .role = Resident::Role::data, .init = Resident::Init::normal});
  nodes[0].op->args = {Operand::resident(data)};
  nodes[1].op = relu;

  SECTION("fits") {
    for (const Node& node : nodes) builder.add(node);
    builder.add_resident_bytes(5);
    const Graph graph = builder.build();
    CHECK(graph.resident_bytes() == 13);
    REQUIRE(graph.op(1) != nullptr);
    CHECK(*graph.op(1) == relu);
  }
  SECTION("another size") {
    nodes[1].size = 12;
    for (const Node& node : nodes) builder.add(node);
    check_refused(builder, {"beta"});
  }
  SECTION("another shape") {
    nodes[1].op->shape = {3};
    nodes[1].size = 12;
    for (const Node& node : nodes) builder.add(node);
    check_refused(builder, {"beta"});
  }
  SECTION("an argument that is no input") {
    nodes[1].inputs.clear();
    for (const Node& node : nodes) builder.add(node);
    check_refused(builder, {"beta"});
  }
  SECTION("a resident that is not there") {
    nodes[0].op->args = {Operand::resident(4)};
    for (const Node& node : nodes) builder.add(node);
    check_refused(builder, {"alpha"});
  }
}

}  // namespace
}  // namespace cairn::core::graph_property_test
