// Tests the options --td (tree decompositions) and --gr (undirected graphs) of `cairn info`, and `cairn solve --td`.
#include <algorithm>
#include <string>

#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace cairn::tests::treewidth_test {
namespace {

TEST_CASE("info --td writes a decomposition and its bounds, and solve --td uses it") {
  const Folder folder;
  const Json json = run_json({"info", "transformer", "--layers", "1", "--td", folder / "g.td", "-o", folder / "g.json",
                              "--work-limit", "100000"});
  CHECK(json["treewidth_lower"] >= 4);
  CHECK(json["treewidth_upper"] <= 8);
  CHECK(json["treewidth_lower"] <= json["treewidth_upper"]);
  CHECK(json["bags"] > 0);
  CHECK(read_text(folder / "g.td").starts_with("s td " + json["bags"].dump() + " "));
  const Json solved = run_json({"solve", folder / "g.json", "--solver", "tw", "--td", folder / "g.td", "--budget",
                                "90%", "--work-limit", "1000000"});
  CHECK(solved["valid"] == true);
  const auto table = run_command({"info", folder / "g.json", "--td", folder / "g.td", "--work-limit", "1000"});
  CHECK(table.code == 0);
  CHECK(contains(table.out, "treewidth"));
  CHECK_FALSE(run_json({"info", folder / "g.json", "--work-limit", "1000"}).contains("treewidth_upper"));
}

TEST_CASE("a decomposition decides what tw does") {
  // If one bag contains all nodes, solver tw recomputes nothing. With the decomposition that info writes, tw
  // recomputes.
  const Folder folder;
  const int nodes =
      run_json({"info", "ffn", "--layers", "6", "-o", folder / "g.json", "--td", folder / "found.td"})["nodes"];
  std::string one = "s td 1 " + std::to_string(nodes) + " " + std::to_string(nodes) + "\nb 1";
  for (int v = 1; v <= nodes; ++v) one += " " + std::to_string(v);
  folder.write("one.td", one + "\n");
  const auto steps = [&](const std::string& td) {
    return run_json({"solve", folder / "g.json", "--solver", "tw", "--option", "k=1", "--td", folder / td})["steps"]
        .get<int>();
  };
  CHECK(steps("one.td") == nodes);
  CHECK(steps("found.td") > nodes);
}

TEST_CASE("info --gr writes what any graph looks like undirected") {
  const Folder folder;
  const std::string text = "p tw 5 4\n1 2\n1 4\n2 4\n4 5\n";
  const std::string graph = folder.write("g.gr", "c twice\n" + std::string("p tw 5 5\n2 1\n4 1\n2 4\n5 4\n4 2\n"));
  const auto outcome = run_command({"info", graph, "--gr", folder / "again.gr", "--work-limit", "1000"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(read_text(folder / "again.gr") == text);
}

TEST_CASE("decompositions that do not fit are refused in one line") {
  const Folder folder;
  const std::string graph = folder.write("g.gr", "p tw 4 2\n1 2\n3 4\n");
  const auto check_refused = [&](const std::string& solver, const std::string& text, const std::string& why) {
    const auto outcome = run_command({"solve", graph, "--solver", solver, "--td", folder.write("g.td", text)});
    CHECK(outcome.code == 2);
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    CHECK(contains(outcome.err, why));
  };
  const std::string good = "s td 2 2 4\nb 1 1 2\nb 2 3 4\n1 2\n";
  check_refused("greedy", good, "solver 'greedy' uses no tree decomposition; these do: tw");
  check_refused("auto", good, "solver 'auto' uses no tree decomposition; these do: tw");
  check_refused("tw", "s td 2 2 4\nb 1 1 2\nb 2 3 4\n", "bags 1 and 2 are not connected");
  check_refused("tw", "s td 2 2 4\nb 1 1 2\nb 2 3\n1 2\n", "node 'v4' is in no bag");
  check_refused("tw", "s td 2 2 4\nb 1 1 3\nb 2 2 4\n1 2\n",
                "nodes 'v1' and 'v2' are joined by an edge but share no bag");
  check_refused("tw", std::string(100'000, '\x01'), "line 1: the line `s td");
  check_error({"info", graph, "--td", graph}, 2, {"would overwrite"});
  check_error({"solve", graph, "--solver", "tw", "--td", folder / "none.td"}, 2, {"none.td: cannot be opened"});
}

}  // namespace

}  // namespace cairn::tests::treewidth_test
