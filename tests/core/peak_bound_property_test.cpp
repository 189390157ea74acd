#include <string>

#include "cairn/core/profile.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::core::peak_bound_property_test {
namespace {

using tests::build_graph;
using tests::make_node;
using tests::Random;
using tests::random_graph;

using Kind = PeakBound::Kind;

/// Returns the sum of all byte counts in `text`, where counts after the word "less" are subtracted. For "'a' (20 B) and
/// scratch (4 B), less 3 B that" it returns 21. All counts must be below 1024, because larger ones are printed in KiB.
std::int64_t named_bytes(const std::string& text) {
  std::int64_t sum = 0;
  for (std::size_t at = text.find(" B"); at != std::string::npos; at = text.find(" B", at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
    if (begin == at) continue;  // this " B" is part of a node's name
    const bool less = begin >= 5 && text.compare(begin - 5, 5, "less ") == 0;
    sum += std::stoll(text.substr(begin, at - begin)) * (less ? -1 : 1);
  }
  return sum;
}

TEST_CASE("the parts of the lower bound are in memory together, and they and their words add up to it") {
  std::int64_t kept = 0, taken_over = 0, several_outputs = 0, left_unnamed = 0;
  tests::for_each_seed(20000, [&](Random& random) {
    auto shape = tests::any_graph(random);
    shape.max_nodes = static_cast<NodeId>(random.between(2, 24));
    const Graph graph = random_graph(random, shape);
    const PeakBound bound = explain_peak_lower_bound(graph);
    REQUIRE(bound.bytes == reference::peak_lower_bound(graph));
    REQUIRE(bound.bytes == peak_lower_bound(graph));
    std::int64_t sum = 0;
    for (const PeakBound::Part& part : bound.parts) {
      sum += part.bytes;
      REQUIRE(part.bytes != 0);
      REQUIRE((part.kind == Kind::kept) == (bound.node == kNoNode));
      if (part.kind == Kind::scratch) {
        REQUIRE(part.value == kNoValue);
        REQUIRE(part.bytes == graph.scratch(bound.node));
        continue;
      }
      REQUIRE(part.bytes == graph.value_size(part.value));
      if (part.kind == Kind::input) REQUIRE(reference::reads(graph, bound.node, part.value));
      if (part.kind == Kind::output) REQUIRE(graph.producer(part.value) == bound.node);
      if (part.kind == Kind::kept) REQUIRE(graph.value_kept(part.value));
    }
    REQUIRE(sum == bound.bytes);
    for (std::size_t i = 1; i < bound.parts.size(); ++i) {
      const PeakBound::Part &before = bound.parts[i - 1], &part = bound.parts[i];
      REQUIRE(before.kind <= part.kind);
      if (before.kind == part.kind) REQUIRE(before.bytes >= part.bytes);
    }
    const std::string text = describe(graph, bound);
    INFO(text);
    REQUIRE(text.find('\n') == std::string::npos);
    if (bound.bytes < 1024) REQUIRE(named_bytes(text) == bound.bytes);
    kept += bound.node == kNoNode ? 1 : 0;
    taken_over += text.find(", less ") != std::string::npos ? 1 : 0;
    several_outputs += text.find(" outputs (") != std::string::npos ? 1 : 0;
    left_unnamed += text.find(" more (") != std::string::npos ? 1 : 0;
    // The bound must be at most the peak of a random schedule, and in small graphs at most the least peak of all
    // orders.
    REQUIRE(bound.bytes <= evaluate(graph, tests::random_schedule(random, graph)).peak);
    if (graph.node_count() <= 9) REQUIRE(bound.bytes <= reference::least_peak_without_recomputation(graph));
  });
  CHECK(kept > 100);
  CHECK(taken_over > 100);
  CHECK(several_outputs > 100);
  CHECK(left_unnamed > 100);
}

TEST_CASE("the lower bound in words") {
  const auto text = [](const Graph& graph) { return describe(graph, explain_peak_lower_bound(graph)); };
  CHECK(text(Graph()) == "no node needs memory");
  CHECK(text(build_graph({make_node("a", 7)})) == "'a' needs its output (7 B) in memory");

  std::vector<Node> nodes;
  for (const char* name : {"a", "b", "c", "d", "e"})
    nodes.push_back(make_node(name, 10 + static_cast<std::int64_t>(nodes.size())));
  nodes.push_back(make_node("sum", 100, {0, 1, 2, 3, 4}));
  nodes.back().scratch = 5;
  CHECK(
      text(build_graph(nodes)) ==
      "'sum' needs its inputs 'e' (14 B), 'd' (13 B), 'c' (12 B), 2 more (21 B), its output (100 B) and scratch (5 B) "
      "in memory together");
  nodes.back().scratch = -14;
  nodes.back().inplace = 4;
  CHECK(text(build_graph(nodes))
            .find(" and its output (100 B) in memory together, less 14 B that it takes over from "
                  "'e'") != std::string::npos);

  Node split;
  split.name = "split";
  split.inputs = {0};
  split.outputs = {{.size = 3, .name = "x"}, {.size = 4, .name = "y"}, {.size = 0, .name = "done"}};
  CHECK(text(build_graph({make_node("a", 7), split})) ==
        "'split' needs its input 'a' (7 B) and its 2 outputs (7 B) in memory together");

  for (Node& node : nodes) {
    node.inputs.clear();
    node.inplace = {};
    node.scratch = 0;
    node.keep = node.name != "sum";
  }
  CHECK(text(build_graph({nodes.begin(), nodes.end() - 1})) ==
        "the kept values 'e' (14 B), 'd' (13 B), 'c' (12 B) and 2 more (21 B) are together in memory at the end");
}

}  // namespace
}  // namespace cairn::core::peak_bound_property_test
