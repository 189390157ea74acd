#include "cairn/solvers/remat/repair/block_form.h"

#include <functional>

#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::solvers::block_form_test {
namespace {

using core::Node;
using core::NodeId;

struct NoFacts {
  void node(NumberText&, NodeId) const {}
  void entering(NumberText&, core::ValueId) const {}
  void output(NumberText&, core::ValueId, const auto&) const {}
};

/// Returns a graph of two equal blocks of three nodes, which read an input of 7 bytes each. `change` changes the nodes
/// before the graph is built.
core::Graph two_blocks(const std::function<void(std::vector<Node>&)>& change) {
  std::vector<Node> nodes;
  for (NodeId b = 0; b < 2; ++b) {
    const NodeId first = 4 * b;
    nodes.push_back(tests::make_node("input", 7));
    nodes.push_back(tests::make_node("a", 3, {first}));
    nodes.push_back(tests::make_node("b", 4, {first, first + 1}));
    nodes.push_back(tests::make_node("c", 5, {first + 1, first + 2}));
  }
  change(nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].name += std::to_string(i);
  return tests::build_graph(nodes);
}

bool are_equal(const core::Graph& graph) {
  const std::vector<NodeId> one{1, 2}, more{3}, other{5, 6}, rest{7};
  return block_form(graph, {one, more}, NoFacts()).text() == block_form(graph, {other, rest}, NoFacts()).text();
}

TEST_CASE("equal blocks have equal forms, whatever their names and numbers are", "[blocks]") {
  CHECK(are_equal(two_blocks([](auto&) {})));
}

TEST_CASE("blocks that differ in one thing have different forms", "[blocks]") {
  CHECK_FALSE(are_equal(two_blocks([](auto& nodes) { nodes[6].size = 5; })));
  CHECK_FALSE(are_equal(two_blocks([](auto& nodes) { nodes[6].cost += 1; })));
  CHECK_FALSE(are_equal(two_blocks([](auto& nodes) { nodes[6].scratch += 1; })));
  CHECK_FALSE(are_equal(two_blocks([](auto& nodes) { nodes[6].pinned = true; })));
  CHECK_FALSE(are_equal(two_blocks([](auto& nodes) { nodes[4].size = 8; })));         // size of the input
  CHECK_FALSE(are_equal(two_blocks([](auto& nodes) { nodes[6].inputs = {4}; })));     // one input fewer
  CHECK_FALSE(are_equal(two_blocks([](auto& nodes) { nodes[7].inputs = {6, 5}; })));  // another order of inputs
  CHECK_FALSE(are_equal(two_blocks([](auto& nodes) { nodes[6].inputs = {0, 5}; })));  // a second value from outside
}

TEST_CASE("the division of a block into lists counts", "[blocks]") {
  const core::Graph graph = two_blocks([](auto&) {});
  const std::vector<NodeId> one{1, 2}, more{3}, less{1}, rest{2, 3};
  CHECK(block_form(graph, {one, more}, NoFacts()).text() != block_form(graph, {less, rest}, NoFacts()).text());
}

}  // namespace
}  // namespace cairn::solvers::block_form_test
