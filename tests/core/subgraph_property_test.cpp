#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/support/subgraph.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::core::subgraph_property_test {
namespace {

using tests::Random;
using tests::random_graph;

std::vector<NodeId> random_subset(Random& random, const Graph& graph) {
  std::vector<NodeId> nodes;
  const int percent = static_cast<int>(random.below(101));
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (random.chance(percent)) nodes.push_back(v);
  }
  random.shuffle(nodes);
  return nodes;
}

/// Returns the edges of `graph` as pairs (input, reader). Nodes are named by their ids in the whole graph.
std::set<std::pair<NodeId, NodeId>> edges(const Graph& graph, const std::vector<NodeId>& whole_id) {
  std::set<std::pair<NodeId, NodeId>> found;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    for (const NodeId u : graph.predecessors(v)) found.emplace(whole_id[u], whole_id[v]);
  }
  return found;
}

TEST_CASE("an induced subgraph has the nodes that were asked for, the edges between them and the order of the whole") {
  tests::for_each_seed(5000, [&](Random& random) {
    const Graph whole = random_graph(random, tests::any_graph(random));
    std::vector<NodeId> nodes = random_subset(random, whole);
    const InducedSubgraph part = induced_subgraph(whole, nodes, {.name = "part"});
    REQUIRE(part.graph.name() == "part");

    const std::set<NodeId> inside(nodes.begin(), nodes.end());
    REQUIRE(part.whole_id == std::vector<NodeId>(inside.begin(), inside.end()));
    for (NodeId v = 0; v < whole.node_count(); ++v) {
      REQUIRE((part.own_id[v] == kNoNode) == (inside.count(v) == 0));
      if (part.own_id[v] != kNoNode) REQUIRE(part.whole_id[part.own_id[v]] == v);
    }
    std::set<std::pair<NodeId, NodeId>> wanted;
    for (const auto& [u, v] : edges(whole, tests::numbers_below(whole.node_count()))) {
      if (inside.count(u) != 0 && inside.count(v) != 0) wanted.emplace(u, v);
    }
    std::set<ValueId> entering, leaving;
    for (NodeId v = 0; v < whole.node_count(); ++v) {
      for (const ValueId x : whole.inputs(v)) {
        const NodeId u = whole.producer(x);
        if (inside.count(u) == 0 && inside.count(v) != 0) entering.insert(x);
        if (inside.count(u) != 0 && inside.count(v) == 0) leaving.insert(x);
      }
    }
    REQUIRE(edges(part.graph, part.whole_id) == wanted);
    REQUIRE(part.entering == std::vector<ValueId>(entering.begin(), entering.end()));
    REQUIRE(part.leaving == std::vector<ValueId>(leaving.begin(), leaving.end()));

    for (NodeId v = 0; v < part.graph.node_count(); ++v) {
      const NodeId old = part.whole_id[v];
      REQUIRE(part.graph.name(v) == whole.name(old));
      REQUIRE(part.graph.size(v) == whole.size(old));
      REQUIRE(part.graph.cost(v) == whole.cost(old));
      REQUIRE(part.graph.keep(v) == whole.keep(old));
      REQUIRE(part.graph.backward(v) == whole.backward(old));
      REQUIRE(part.graph.scratch(v) >= whole.scratch(old));
      if (part.entering.empty()) REQUIRE(part.graph.scratch(v) == whole.scratch(old));
    }
    std::vector<NodeId> order;
    for (const NodeId v : whole.input_order()) {
      if (inside.count(v) != 0) order.push_back(v);
    }
    for (std::size_t i = 0; i < order.size(); ++i) REQUIRE(part.whole_id[part.graph.input_order()[i]] == order[i]);
  });
}

TEST_CASE("the subgraph of all nodes is the graph") {
  tests::for_each_seed(1000, [&](Random& random) {
    const Graph whole = random_graph(random, tests::any_graph(random));
    std::vector<NodeId> nodes = tests::numbers_below(whole.node_count());
    nodes.push_back(0);  // a node that is listed twice
    const InducedSubgraph part = induced_subgraph(whole, nodes);
    REQUIRE(part.graph.fingerprint() == whole.fingerprint());
    REQUIRE((part.entering.empty() && part.leaving.empty()));
  });
}

TEST_CASE("memory in a stretch of a schedule is that of its subgraph and of what is in memory from outside") {
  std::int64_t raised = 0;
  tests::for_each_seed(5000, [&](Random& random) {
    const Graph whole = random_graph(random, tests::any_graph(random));
    const Schedule schedule = tests::random_schedule(random, whole, 0);
    const std::int64_t begin = random.below(schedule.length() + 1);
    const std::int64_t end = random.between(begin, schedule.length());
    const std::span<const NodeId> stretch(schedule.steps.data() + begin, schedule.steps.data() + end);
    const InducedSubgraph part = induced_subgraph(whole, stretch, {.name = "", .keep_leaving = true});
    Schedule inside;
    for (const NodeId v : stretch) inside.steps.push_back(part.own_id[v]);
    REQUIRE(reference::valid(part.graph, inside));
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t outside = 0;
      for (const auto& [j, value] : reference::live(whole, schedule, i)) {
        if (j < begin) outside += whole.value_size(value);
      }
      const NodeId v = schedule.steps[i];
      const std::int64_t more = part.graph.scratch(part.own_id[v]) - whole.scratch(v);
      raised += more > 0 ? 1 : 0;
      REQUIRE(reference::during(part.graph, inside, i - begin) + outside ==
              reference::during(whole, schedule, i) + more);
    }
  });
  CHECK(raised > 100);
}

TEST_CASE("ops stay where no value enters") {
  GraphBuilder builder("net");
  builder.add_resident({.name = "x", .shape = {2}, .role = Resident::Role::data, .init = Resident::Init::normal});
  builder.add_resident_bytes(5);
  for (NodeId v = 0; v < 3; ++v) {
    Node node = tests::make_node(std::string(1, static_cast<char>('a' + v)), 8);
    Op op{.kind = v == 0 ? OpKind::scale : OpKind::relu,
          .shape = {2},
          .args = {v == 0 ? Operand::resident(0) : Operand::node(v - 1)}};
    if (v > 0) node.inputs = {v - 1};
    node.op = op;
    builder.add(node);
  }
  const Graph whole = builder.build();
  const InducedSubgraph head = induced_subgraph(whole, std::vector<NodeId>{0, 1});
  CHECK(head.graph.resident_bytes() == 13);
  REQUIRE(head.graph.op(1) != nullptr);
  CHECK(*head.graph.op(1) == *whole.op(1));
  const InducedSubgraph tail = induced_subgraph(whole, std::vector<NodeId>{1, 2});
  CHECK(tail.graph.op(0) == nullptr);
  CHECK(tail.graph.op(1) == nullptr);
  CHECK(tail.entering == std::vector<NodeId>{0});
}

TEST_CASE("a subgraph of nodes that are none") {
  Random random(1);
  const Graph whole = random_graph(random);
  CHECK_THROWS_AS(induced_subgraph(whole, std::vector<NodeId>{-1}), InputError);
  CHECK_THROWS_AS(induced_subgraph(whole, std::vector<NodeId>{whole.node_count()}), InputError);
}

}  // namespace
}  // namespace cairn::core::subgraph_property_test
