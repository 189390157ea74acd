// Tests layers_of() against the comments in its header, on random training graphs. The mark of a backward node names
// the node's forward node.

#include "cairn/solvers/remat/rotor/layers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/remat/training_graphs.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::layers_test {
namespace {

using core::Graph;
using core::NodeId;
using tests::Random;

tests::TrainingOptions any_training(Random& random, NodeId most) {
  tests::TrainingOptions options{.forward = tests::any_graph(random, {.min_nodes = 1, .max_nodes = most})};
  options.without_backward = static_cast<int>(random.below(2) * 30);
  options.other_reads = static_cast<int>(random.below(2) * 30);
  return options;
}

std::vector<std::int32_t> layer_of_node(const Graph& graph, const std::vector<Layer>& layers) {
  std::vector<std::int32_t> layer(static_cast<std::size_t>(graph.node_count()), -1);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (const auto* part : {&layers[i].forward, &layers[i].backward}) {
      for (const NodeId v : *part) {
        REQUIRE(layer[static_cast<std::size_t>(v)] == -1);
        layer[static_cast<std::size_t>(v)] = static_cast<std::int32_t>(i);
      }
    }
  }
  return layer;
}

/// Checks four properties of layers: every node is in one layer; a marked backward node is in the layer of its mark;
/// unmarked backward nodes are in the layers that the header names; and both passes can run in the order of the layers.
void check(const Graph& graph, const std::vector<Layer>& layers) {
  const std::vector<std::int32_t> layer = layer_of_node(graph, layers);
  REQUIRE(std::count(layer.begin(), layer.end(), -1) == 0);
  const auto at = [&](NodeId v) { return layer[static_cast<std::size_t>(v)]; };
  bool any_backward = false;
  for (NodeId v = 0; v < graph.node_count(); ++v) any_backward = any_backward || graph.backward(v);
  std::vector<const Layer*> all;
  core::Schedule schedule;
  for (const Layer& one : layers) {
    all.push_back(&one);
    REQUIRE(one.forward.size() == 1);
    REQUIRE_FALSE(graph.backward(one.forward[0]));
    for (const NodeId v : one.backward) REQUIRE(graph.backward(v));
    if (!any_backward) REQUIRE(one.backward.empty());
    schedule.steps.insert(schedule.steps.end(), one.forward.begin(), one.forward.end());
  }
  const std::size_t forward_steps = schedule.steps.size();
  for (auto one = layers.rbegin(); one != layers.rend(); ++one)
    schedule.steps.insert(schedule.steps.end(), one->backward.begin(), one->backward.end());
  REQUIRE(schedule.length() == graph.node_count());
  REQUIRE(core::reference::valid(graph, schedule));

  const Layer whole = join(all);
  const auto middle = schedule.steps.begin() + static_cast<std::ptrdiff_t>(forward_steps);
  REQUIRE(whole.forward == std::vector<NodeId>(schedule.steps.begin(), middle));
  REQUIRE(whole.backward == std::vector<NodeId>(middle, schedule.steps.end()));

  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (!graph.backward(v)) continue;
    if (graph.forward(v) != core::kNoNode) {
      REQUIRE(at(v) == at(graph.forward(v)));
      continue;
    }
    std::int32_t latest = -1;
    for (const NodeId u : graph.predecessors(v)) {
      if (!graph.backward(u)) latest = std::max(latest, at(u));
    }
    std::optional<std::int32_t> gradient;
    for (const NodeId u : graph.predecessors(v)) {
      if (graph.backward(u)) gradient = std::min(gradient.value_or(at(u)), at(u));
    }
    if (latest >= 0) {
      REQUIRE(at(v) == std::min(latest, gradient.value_or(latest)));
    } else if (gradient) {
      REQUIRE(at(v) <= *gradient);
    }
  }
}

/// Returns the message of the InputError that layers_of() throws. If it throws none, checks the layers and returns
/// nothing.
std::optional<std::string> refusal(const Graph& graph) {
  try {
    check(graph, layers_of(graph));
  } catch (const core::InputError& error) {
    const std::string what = error.what();
    REQUIRE(what.find('\n') == std::string::npos);
    REQUIRE_FALSE(what.empty());
    return what;
  }
  return std::nullopt;
}

void require_refusal(const Graph& graph, const std::vector<std::string>& names) {
  const std::optional<std::string> what = refusal(graph);
  REQUIRE(what);
  tests::check_says(*what, names);
}

/// Returns whether the forward nodes can be put into an order that agrees with all edges of both passes. There is no
/// such order if the relation "must come before" has a cycle. All backward nodes must be marked.
bool some_order(const Graph& graph) {
  const NodeId n = graph.node_count();
  std::vector<std::vector<NodeId>> after(static_cast<std::size_t>(n));
  for (NodeId v = 0; v < n; ++v) {
    for (const NodeId u : graph.predecessors(v)) {
      if (!graph.backward(v) && graph.backward(u)) return false;
      if (!graph.backward(v)) after[static_cast<std::size_t>(u)].push_back(v);
      if (graph.backward(v) && graph.backward(u) && graph.forward(u) != graph.forward(v))
        after[static_cast<std::size_t>(graph.forward(v))].push_back(graph.forward(u));
    }
  }
  std::vector<int> state(static_cast<std::size_t>(n), 0);
  const std::function<bool(NodeId)> cyclic = [&](NodeId v) {
    int& mine = state[static_cast<std::size_t>(v)];
    if (mine != 0) return mine == 1;
    mine = 1;
    for (const NodeId w : after[static_cast<std::size_t>(v)]) {
      if (cyclic(w)) return true;
    }
    state[static_cast<std::size_t>(v)] = 2;
    return false;
  };
  for (NodeId v = 0; v < n; ++v) {
    if (cyclic(v)) return false;
  }
  return true;
}

TEST_CASE("layers of random training graphs, all of whose backward nodes are marked", "[layers]") {
  tests::for_each_seed(1500, [](Random& random) {
    const Graph graph = tests::training_graph(random, any_training(random, 12));
    REQUIRE(refusal(graph) == std::nullopt);
  });
}

TEST_CASE("layers of training graphs without marks of who belongs to whom", "[layers]") {
  tests::for_each_seed(1500, [](Random& random) {
    std::vector<core::Node> nodes = tests::training_nodes(random, any_training(random, 12));
    for (core::Node& node : nodes) node.forward = core::kNoNode;
    REQUIRE(refusal(tests::build_graph(nodes)) == std::nullopt);
  });
}

TEST_CASE("layers of training graphs in which some marks are missing", "[layers]") {
  int refused = 0;
  tests::for_each_seed(1500, [&](Random& random) {
    std::vector<core::Node> nodes = tests::training_nodes(random, any_training(random, 12));
    for (core::Node& node : nodes) {
      if (random.chance(30)) node.forward = core::kNoNode;
    }
    refused += refusal(tests::build_graph(nodes)).has_value();
  });
  CAPTURE(refused);
  CHECK(refused < 150);
}

TEST_CASE("layers of graphs without backward nodes: one a node", "[layers]") {
  tests::for_each_seed(1000, [](Random& random) {
    std::vector<core::Node> nodes = tests::random_nodes(random, tests::any_graph(random));
    for (core::Node& node : nodes) node.backward = false, node.forward = core::kNoNode;
    const Graph graph = tests::build_graph(nodes);
    check(graph, layers_of(graph));
  });
  CHECK(layers_of(Graph()).empty());
}

TEST_CASE("marks to any forward node: refused exactly where no order of the forward nodes suits the edges",
          "[layers]") {
  int refused = 0, accepted = 0;
  tests::for_each_seed(3000, [&](Random& random) {
    const tests::TrainingOptions options = any_training(random, 5);
    std::vector<core::Node> nodes = tests::training_nodes(random, options);
    std::vector<NodeId> forward;
    for (std::size_t v = 0; v < nodes.size(); ++v) {
      if (!nodes[v].backward) forward.push_back(static_cast<NodeId>(v));
    }
    for (core::Node& node : nodes) {
      if (node.backward && random.chance(30)) node.forward = random.pick(forward);
    }
    const Graph graph = tests::build_graph(nodes);
    const bool possible = some_order(graph);
    REQUIRE(refusal(graph).has_value() == !possible);
    ++(possible ? accepted : refused);
  });
  CHECK(refused > 200);
  CHECK(accepted > 200);
}

TEST_CASE("marks that contradict the edges are refused by name", "[layers]") {
  const auto node = [](const char* name, std::vector<NodeId> inputs, bool backward = false,
                       NodeId forward = core::kNoNode) {
    core::Node made = tests::make_node(name, 1, std::move(inputs));
    made.backward = backward;
    made.forward = forward;
    return made;
  };
  SECTION("a forward node that reads a backward one") {
    require_refusal(tests::build_graph({node("conv", {}), node("conv_grad", {0}, true, 0), node("head", {1})}),
                    {"conv_grad", "head"});
  }
  SECTION("a mark to a backward node") {
    require_refusal(
        tests::build_graph({node("conv", {}), node("conv_grad", {0}, true, 0), node("bias_grad", {1}, true, 1)}),
        {"conv_grad", "bias_grad"});
  }
  SECTION("a backward pass in the order of the forward pass") {
    require_refusal(tests::build_graph({node("first", {}), node("second", {0}), node("first_grad", {1}, true, 0),
                                        node("second_grad", {2}, true, 1)}),
                    {"first_grad", "second_grad"});
  }
  SECTION("everything is marked backward") {
    require_refusal(tests::build_graph({node("lonely", {}, true), node("other", {0}, true)}), {"all nodes"});
  }
}

TEST_CASE("a mark that is missing goes where the gradient comes from", "[layers]") {
  // The graph is a chain a -> b -> c with the gradients dc, db and da. Node da also reads the value of c, for example
  // because it needs its shape.
  std::vector<core::Node> nodes{tests::make_node("a", 1),          tests::make_node("b", 1, {0}),
                                tests::make_node("c", 1, {1}),     tests::make_node("dc", 1, {2}),
                                tests::make_node("db", 1, {1, 3}), tests::make_node("da", 1, {2, 0, 4})};
  for (std::size_t v = 3; v < 6; ++v) nodes[v].backward = true;
  const std::vector<Layer> layers = layers_of(tests::build_graph(nodes));
  REQUIRE(layers.size() == 3);
  CHECK(layers[0].backward.empty());
  // Node da reads c, but belongs to the layer of the gradient that it reads, db.
  CHECK(layers[1].backward == std::vector<NodeId>{4, 5});
  CHECK(layers[2].backward == std::vector<NodeId>{3});
}

}  // namespace
}  // namespace cairn::solvers::layers_test
