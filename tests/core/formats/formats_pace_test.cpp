#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/parse_error.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::core::formats_pace_test {
namespace {

std::string error_of(const std::string& text) { return tests::parse_error(text, "g.gr"); }

TEST_CASE("a .gr file: edges go from lower to higher, repeats count once, comments and blanks go", "[formats]") {
  const Graph graph = parse_graph("\n c first\r\np tw 5 5\r\n2 1\n  c between 7 8\n2 3\n\n3 2\n1 2\t\n 1 3 ", "g.gr");
  REQUIRE(graph.node_count() == 5);
  CHECK(graph.edge_count() == 3);
  CHECK(std::vector<NodeId>(graph.successors(0).begin(), graph.successors(0).end()) == std::vector<NodeId>{1, 2});
  CHECK(std::vector<NodeId>(graph.successors(1).begin(), graph.successors(1).end()) == std::vector<NodeId>{2});
  CHECK(graph.name(4) == "v5");
  CHECK(graph.size(4) == 1);
  CHECK(graph.cost(4) == 1);
  CHECK(graph_to_gr(graph) == "p tw 5 3\n1 2\n1 3\n2 3\n");
  CHECK(parse_graph("p tw 0 0", "g.gr").node_count() == 0);
}

TEST_CASE("the undirected graph survives .gr", "[formats]") {
  tests::for_each_seed(500, [](tests::Random& random) {
    const Graph graph = tests::random_graph(random, tests::any_graph(random));
    const std::string text = graph_to_gr(graph);
    const Graph again = parse_graph(text, "g.gr");
    REQUIRE(again.node_count() == graph.node_count());
    REQUIRE(graph_to_gr(again) == text);
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      REQUIRE(again.predecessors(v).size() + again.successors(v).size() ==
              graph.predecessors(v).size() + graph.successors(v).size());
    }
  });
}

TEST_CASE("what is wrong with a .gr file is one line that says where", "[formats]") {
  CHECK(error_of("p tw 3 2\n1 2\n") == "g.gr: its p line says 2 edges, but there are 1");
  CHECK(error_of("p tw 3 0\n1 2\n") == "g.gr: its p line says 0 edges, but there are 1");
  CHECK(error_of("p tw 3 1\n2 2\n") == "g.gr: line 2: the edge joins vertex 2 to itself");
  CHECK(error_of("p tw 3 1\n\n2 4\n") == "g.gr: line 3: a vertex is 4, but must be from 1 to 3");
  CHECK(error_of("p tw 3 1\n0 1\n") == "g.gr: line 2: a vertex is 0, but must be from 1 to 3");
  CHECK(error_of("p tw 3 1\n-1 1\n") == "g.gr: line 2: a vertex is -1, but must be from 1 to 3");
  CHECK(error_of("p tw 0 1\n1 2\n") == "g.gr: line 2: a vertex is 1, but there are none");
  CHECK(error_of("p tw 3 1\n1 x\n") == "g.gr: line 2: a vertex must be a whole number, not 'x'");
  CHECK(error_of("p tw 3 1\n1 2.5\n") == "g.gr: line 2: a vertex must be a whole number, not '2.5'");
  CHECK(error_of("p tw 3 1\n1 2 3\n") == "g.gr: line 2: an edge is two vertices, not 3 words");
  CHECK(error_of("p tw 3 1\n1\n") == "g.gr: line 2: an edge is two vertices, not 1 words");
  CHECK(error_of("1 2\n2 3\n") == "g.gr: line 1: an edge comes before the line `p tw VERTICES EDGES`");
  CHECK(error_of("c only this\n") == "g.gr: has no line `p tw VERTICES EDGES`");
  CHECK(error_of("p tw 1 0\np tw 1 0\n") == "g.gr: line 2: the p line occurs twice");
  CHECK(error_of("p edge 1 0\n") == "g.gr: line 1: must be `p tw VERTICES EDGES` with the two numbers");
  CHECK(error_of("p tw 1\n") == "g.gr: line 1: must be `p tw VERTICES EDGES` with the two numbers");
  CHECK(error_of("p tw -1 0\n") == "g.gr: line 1: the number of vertices is -1, but must be from 0 to 268435456");
  CHECK(error_of("p tw 99999999999999999999 0\n").find("the number of vertices is 99999999999999999999, but") !=
        std::string::npos);
  CHECK(error_of("p tw 200000000 1\n1 2\n") ==
        "g.gr: more than 1000000 of its 200000000 vertices have no edge; leave them out");
  CHECK(error_of("c\n\x01\x02" + std::string(1000, '\xff') + "\n").find("g.gr: line 2: an edge comes before") == 0);
  CHECK(error_of("p tw 2 1\n1 \xff\n") == "g.gr: line 2: a vertex must be a whole number, not '?'");
  CHECK(error_of("p tw 2 1\n1 " + std::string(5000, 'x') + "\n").size() < 100);
}

TEST_CASE("a limit ends the reading of a .gr file", "[formats]") {
  std::string text = "p tw 2 100000\n";
  for (int i = 0; i < 100'000; ++i) text += "1 2\n";
  CHECK(parse_graph(text, "g.gr").edge_count() == 1);
  CHECK_THROWS_AS(parse_graph(text, "g.gr", {.limit = {.work = 5000}}), InterruptedError);
}

}  // namespace
}  // namespace cairn::core::formats_pace_test
