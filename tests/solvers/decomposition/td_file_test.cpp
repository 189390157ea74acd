#include "cairn/solvers/decomposition/td_file.h"

#include <string>

#include "cairn/core/error.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::td_file_test {
namespace {

using core::Graph;

/// Returns a graph that is the path a -> b -> c -> d.
Graph path() {
  core::GraphBuilder builder;
  for (const char* name : {"a", "b", "c", "d"}) builder.add(tests::make_node(name));
  for (core::NodeId v = 1; v < 4; ++v) builder.add_input(v, v - 1);
  return builder.build();
}

std::string error_of(const std::string& text) {
  return tests::error_of([&] { parse_td(text, "g.td", path()); });
}

TEST_CASE("a .td file with comments, blanks and repeated vertices") {
  const std::string text = "c a path\ns td 3 2 4\r\nb 2 3 2 3\n\nb 1 1 2\nc bag 3\nb 3 4 3\n3 2\n1 2\n";
  const TreeDecomposition decomposition = parse_td(text, "g.td", path());
  CHECK(decomposition.width == 1);
  CHECK(decomposition.bags == std::vector<std::vector<core::NodeId>>{{0, 1}, {1, 2}, {2, 3}});
  CHECK(td_text(decomposition, 4) == "s td 3 2 4\nb 1 1 2\nb 2 2 3\nb 3 3 4\n1 2\n2 3\n");
  CHECK(parse_td("s td 0 0 0\n", "g.td", Graph()).bags.empty());
  CHECK(parse_td("s td 2 0 0\nb 1\nb 2\n1 2\n", "g.td", Graph()).bags.size() == 2);
}

TEST_CASE("decompositions survive .td") {
  tests::for_each_seed(500, [](tests::Random& random) {
    const Graph graph = tests::random_graph(random, {.max_nodes = 40});
    const TreeDecomposition decomposition = min_fill_decomposition(graph);
    const std::string text = td_text(decomposition, graph.node_count());
    const TreeDecomposition again = parse_td(text, "g.td", graph);
    REQUIRE(again.bags == decomposition.bags);
    REQUIRE(again.width == decomposition.width);
    REQUIRE(td_text(again, graph.node_count()) == text);
  });
}

TEST_CASE("what is wrong with a .td file is one line that says where") {
  const std::string bags = "b 1 1 2\nb 2 2 3\nb 3 3 4\n";
  CHECK(error_of("s td 3 2 4\n" + bags + "1 2\n2 3\n").empty());
  CHECK(error_of("") == "g.td: has no line `s td BAGS LARGEST_BAG VERTICES`");
  CHECK(error_of(bags) == "g.td: line 1: the line `s td BAGS LARGEST_BAG VERTICES` must come first");
  CHECK(error_of("s td 3 2\n") == "g.td: line 1: must be `s td BAGS LARGEST_BAG VERTICES` with the three numbers");
  CHECK(error_of("s td 3 2 4\ns td 3 2 4\n" + bags) == "g.td: line 2: there is more than one s line");
  CHECK(error_of("s td 3 2 5\n" + bags) == "g.td: line 1: it is of a graph of 5 vertices, but this one has 4");
  CHECK(error_of("s td 4 2 4\n" + bags + "1 2\n2 3\n") == "g.td: its s line says 4 bags, but bag 4 is not given");
  CHECK(error_of("s td 2 2 4\n" + bags) == "g.td: line 4: a bag is 3, but must be from 1 to 2");
  CHECK(error_of("s td 3 3 4\n" + bags + "1 2\n2 3\n") ==
        "g.td: its s line says the largest bag has 3 vertices, but it has 2");
  CHECK(error_of("s td 3 1 4\n" + bags) == "g.td: line 2: bag 1 has 2 vertices, but the s line says at most 1");
  CHECK(error_of("s td 3 2 4\nb 1 1 5\n") == "g.td: line 2: a vertex is 5, but must be from 1 to 4");
  CHECK(error_of("s td 3 2 4\nb 1 0\n") == "g.td: line 2: a vertex is 0, but must be from 1 to 4");
  CHECK(error_of("s td 3 2 4\nb 1 x\n") == "g.td: line 2: a vertex must be a whole number, not 'x'");
  CHECK(error_of("s td 3 2 4\nb\n") == "g.td: line 2: must be `b BAG VERTEX...`");
  CHECK(error_of("s td 3 2 4\nb 1 1 2\nb 1 2 3\n") == "g.td: line 3: bag 1 occurs twice");
  CHECK(error_of("s td 3 2 4\n" + bags + "1 2 3\n") ==
        "g.td: line 5: must be `b BAG VERTEX...`, or two bags: an edge of the tree");
  CHECK(error_of("s td 3 2 4\n" + bags + "1 4\n") == "g.td: line 5: a bag is 4, but must be from 1 to 3");
  CHECK(error_of("s td 3 2 4\n" + bags + "1 2\n2 3\n1 3\n") ==
        "g.td: line 7: the edge between bags 1 and 3 closes a cycle");
  CHECK(error_of("s td 3 2 4\n" + bags + "1 2\n2 1\n") == "g.td: line 6: the edge between bags 2 and 1 closes a cycle");
  CHECK(error_of("s td 3 2 4\n" + bags + "2 2\n") == "g.td: line 5: the edge between bags 2 and 2 closes a cycle");
  CHECK(error_of("s td 3 2 4\n" + bags + "1 2\n") ==
        "g.td: bags 1 and 3 are not connected; join the parts to one tree by edges between bags");
  CHECK(error_of("s td 3 2 4\nb 1 1 2\nb 2 2 3\nb 3 3\n1 2\n2 3\n") ==
        "g.td: is not a tree decomposition of this graph: node 'd' is in no bag");
  CHECK(error_of("s td 3 2 4\nb 1 1 2\nb 2 3\nb 3 3 4\n1 2\n2 3\n") ==
        "g.td: is not a tree decomposition of this graph: nodes 'b' and 'c' are joined by an edge but share no bag");
  CHECK(error_of("s td 3 2 4\n" + bags + "1 3\n3 2\n") ==
        "g.td: is not a tree decomposition of this graph: the bags of node 'b' are not connected");
  CHECK(error_of("s td 999999999 2 4\n") == "g.td: line 1: the number of bags is 999999999, but must be from 0 to 5");
  CHECK(error_of("\x7f"
                 "ELF\x01\x01" +
                 std::string(300, '\0')) == "g.td: line 1: the line `s td BAGS LARGEST_BAG VERTICES` must come first");
  CHECK(error_of("{\"format\":\"cairn.graph\"}") ==
        "g.td: line 1: the line `s td BAGS LARGEST_BAG VERTICES` must come first");
}

TEST_CASE("a limit ends the reading of a .td file") {
  std::string text = "s td 3 2 4\n";
  for (int i = 0; i < 10'000; ++i) text += "c\n";
  CHECK_THROWS_AS(parse_td(text, "g.td", path(), {.work = 5000}), core::InterruptedError);
}

TEST_CASE("every mutated .td file gives a valid decomposition or one clear line") {
  tests::for_each_seed(3000, [](tests::Random& random) {
    const Graph graph = path();
    std::string text = "s td 3 2 4\nb 1 1 2\nb 2 2 3\nb 3 3 4\n1 2\n2 3\n";
    for (std::int64_t edits = random.between(1, 3); edits > 0; --edits) {
      const auto at = random.place(text);
      const std::vector<std::string> tokens{
          "", "1", "9", " ", "\n", "b", "s", "c", "-", "\xff", "99999999999999999999"};
      text.replace(at, 1, random.pick(tokens));
      if (text.empty()) text = "\n";
    }
    try {
      const TreeDecomposition decomposition = parse_td(text, "g.td", graph);
      CHECK(check_decomposition(graph, decomposition) == "");
    } catch (const core::InputError& error) {
      const std::string message = error.what();
      INFO(text);
      CHECK(message.starts_with("g.td: "));
      CHECK(message.find('\n') == std::string::npos);
    }
  });
}

}  // namespace
}  // namespace cairn::solvers::td_file_test
