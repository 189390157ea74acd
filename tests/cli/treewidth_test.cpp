// cairn info --td and --gr, cairn solve --td.
#include <algorithm>
#include <string>

#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace cairn::treewidth_test {
namespace {

TEST_CASE("info --td writes a decomposition and its bounds, and solve --td uses it") {
  const test::Folder folder;
  const auto info = test::run_command({"info", "transformer", "--layers", "1", "--td", folder / "g.td", "-o",
                                       folder / "g.json", "--work-limit", "100000", "--json"});
  INFO(info.err);
  REQUIRE(info.code == 0);
  const auto json = info.json();
  CHECK(json["treewidth_lower"] >= 4);
  CHECK(json["treewidth_upper"] <= 8);
  CHECK(json["treewidth_lower"] <= json["treewidth_upper"]);
  CHECK(json["bags"] > 0);
  CHECK(test::read_text(folder / "g.td").starts_with("s td " + json["bags"].dump() + " "));
  const auto solved = test::run_command({"solve", folder / "g.json", "--solver", "tw", "--td", folder / "g.td",
                                         "--budget", "90%", "--work-limit", "1000000", "--json"});
  INFO(solved.err);
  REQUIRE(solved.code == 0);
  CHECK(solved.json()["valid"] == true);
  const auto table = test::run_command({"info", folder / "g.json", "--td", folder / "g.td", "--work-limit", "1000"});
  CHECK(table.code == 0);
  CHECK(table.out.find("treewidth") != std::string::npos);
  const auto without = test::run_command({"info", folder / "g.json", "--work-limit", "1000", "--json"});
  CHECK_FALSE(without.json().contains("treewidth_upper"));
}

TEST_CASE("a decomposition decides what tw does") {
  // With one bag for all, no separator leaves anything to recompute.
  const test::Folder folder;
  const auto info = test::run_command(
      {"info", "ffn", "--layers", "6", "-o", folder / "g.json", "--td", folder / "found.td", "--json"});
  INFO(info.err);
  REQUIRE(info.code == 0);
  const int nodes = info.json()["nodes"];
  std::string one = "s td 1 " + std::to_string(nodes) + " " + std::to_string(nodes) + "\nb 1";
  for (int v = 1; v <= nodes; ++v) one += " " + std::to_string(v);
  folder.write("one.td", one + "\n");
  const auto steps = [&](const std::string& td) {
    const auto outcome = test::run_command(
        {"solve", folder / "g.json", "--solver", "tw", "--option", "k=1", "--td", folder / td, "--json"});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.json()["steps"].get<int>();
  };
  CHECK(steps("one.td") == nodes);
  CHECK(steps("found.td") > nodes);
}

TEST_CASE("info --gr writes what any graph looks like undirected") {
  const test::Folder folder;
  const std::string text = "p tw 5 4\n1 2\n1 4\n2 4\n4 5\n";
  const std::string graph = folder.write("g.gr", "c twice\n" + std::string("p tw 5 5\n2 1\n4 1\n2 4\n5 4\n4 2\n"));
  const auto outcome = test::run_command({"info", graph, "--gr", folder / "again.gr", "--work-limit", "1000"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(test::read_text(folder / "again.gr") == text);
}

TEST_CASE("decompositions that do not fit are refused in one line") {
  const test::Folder folder;
  const std::string graph = folder.write("g.gr", "p tw 4 2\n1 2\n3 4\n");
  const auto error = [&](const std::string& solver, const std::string& text) {
    const auto outcome = test::run_command({"solve", graph, "--solver", solver, "--td", folder.write("g.td", text)});
    CHECK(outcome.code == 2);
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    return outcome.err;
  };
  const std::string good = "s td 2 2 4\nb 1 1 2\nb 2 3 4\n1 2\n";
  CHECK(error("greedy", good).find("solver 'greedy' uses no tree decomposition; these do: tw") != std::string::npos);
  CHECK(error("auto", good).find("solver 'auto' uses no tree decomposition; these do: tw") != std::string::npos);
  CHECK(error("tw", "s td 2 2 4\nb 1 1 2\nb 2 3 4\n").find("bags 1 and 2 are not connected") != std::string::npos);
  CHECK(error("tw", "s td 2 2 4\nb 1 1 2\nb 2 3\n1 2\n").find("node 'v4' is in no bag") != std::string::npos);
  CHECK(error("tw", "s td 2 2 4\nb 1 1 3\nb 2 2 4\n1 2\n")
            .find("nodes 'v1' and 'v2' are joined by an edge but share no bag") != std::string::npos);
  CHECK(error("tw", std::string(100'000, '\x01')).find("line 1: the line `s td") != std::string::npos);
  const auto same = test::run_command({"info", graph, "--td", graph});
  CHECK(same.code == 2);
  CHECK(same.err.find("would overwrite") != std::string::npos);
  const auto missing = test::run_command({"solve", graph, "--solver", "tw", "--td", folder / "none.td"});
  CHECK(missing.code == 2);
  CHECK(missing.err.find("none.td: cannot be opened") != std::string::npos);
}

}  // namespace

}  // namespace cairn::treewidth_test
