#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"
#include "cairn/tests/solvers/no_engine.h"
#include "cairn/tests/support/parts.h"

namespace cairn::tests::bad_input_test {
namespace {

std::string graph_of(const std::string& nodes, const std::string& rest = "") {
  return R"({"format":"cairn.graph","version":1,"name":"g",)" + rest + R"("nodes":[)" + nodes + "]}";
}

void check_bad_graph(const std::string& text, const Words& fragments) {
  const Folder folder;
  const std::string path = folder.write("bad.json", text);
  check_error({"solve", path, "--solver", "none"}, 2, fragments + Words{"bad.json"});
}

}  // namespace

TEST_CASE("a file that is no graph is one line on stderr and exit code 2") {
  SECTION("empty") { check_bad_graph("", {"empty"}); }
  SECTION("truncated JSON") { check_bad_graph(diamond_graph().substr(0, 120), {}); }
  SECTION("not JSON at all") { check_bad_graph("once upon a time\n", {}); }
  SECTION("missing file") { check_error({"info", "/nonexistent/g.json"}, 2, {"/nonexistent/g.json"}); }
}

TEST_CASE("a granularity that does not fit is named") {
  check_error({"model", "ffn", "--granularity", "foo"}, 2, {"'foo'", "use layer or op"});
  check_error({"solve", "ffn", "--granularity", "layers"}, 2, {"'layers'", "did you mean 'layer'"});
  check_error({"info", "g.json", "--granularity", "op"}, 2, {"--granularity", "'g.json' is a file"});
  check_error({"model", "ffn", "--granularity", "op", "--precision", "bf16"}, 2, {"--granularity layer"});
}

TEST_CASE("a graph that is none names the nodes") {
  SECTION("cycle") {
    check_bad_graph(graph_of(R"({"name":"p","size":1,"inputs":[2]},{"name":"q","size":1,"inputs":[0]},
                                {"name":"r","size":1,"inputs":[1]},{"name":"s","size":1,"inputs":[0]})"),
                    {"cycle", "p", "q", "r"});
  }
  SECTION("self-loop") { check_bad_graph(graph_of(R"({"name":"loopy","size":1,"inputs":[0]})"), {"loopy"}); }
  SECTION("edge to an unknown node") {
    check_bad_graph(graph_of(R"({"name":"reader","size":1,"inputs":[7]})"), {"reader", "7"});
  }
  SECTION("edge to an unknown node, node-link") {
    check_bad_graph(R"({"directed":true,"multigraph":false,"graph":{},
                       "nodes":[{"id":0,"cost_ram":1,"cost_cpu":1}],"links":[{"source":0,"target":9}]})",
                    {"9"});
  }
  SECTION("duplicate name") {
    check_bad_graph(graph_of(R"({"name":"twin","size":1,"inputs":[]},{"name":"twin","size":1,"inputs":[0]})"),
                    {"twin"});
  }
  SECTION("negative size") { check_bad_graph(graph_of(R"({"name":"hole","size":-4,"inputs":[]})"), {"hole", "size"}); }
  SECTION("negative cost") {
    check_bad_graph(graph_of(R"({"name":"gift","size":4,"cost":-1,"inputs":[]})"), {"gift", "cost"});
  }
  SECTION("sizes whose sum overflows") {
    check_bad_graph(graph_of(R"({"name":"x","size":9000000000000000000,"inputs":[]},
                                {"name":"y","size":9000000000000000000,"inputs":[0]})"),
                    {"size"});
  }
  SECTION("illegal negative scratch") {
    check_bad_graph(graph_of(R"({"name":"u","size":8,"inputs":[]},{"name":"v","size":8,"scratch":-9,"inputs":[0]})"),
                    {"v", "scratch"});
  }
  SECTION("order that is no permutation") {
    check_bad_graph(
        graph_of(R"({"name":"u","size":8,"inputs":[]},{"name":"v","size":8,"inputs":[0]})", R"("order":[0,0],)"),
        {"order"});
  }
  SECTION("order that is not topological") {
    check_bad_graph(
        graph_of(R"({"name":"u","size":8,"inputs":[]},{"name":"v","size":8,"inputs":[0]})", R"("order":[1,0],)"),
        {"order", "u", "v"});
  }
}

TEST_CASE("a schedule made for another graph is refused") {
  const auto [folder, graph] = Diamond{};
  const std::string other = folder.write("other.json", replaced(diamond_graph(), "20", "21"));
  const std::string schedule = folder / "s.json";
  REQUIRE(run_command({"solve", other, "--solver", "none", "-o", schedule}).code == 0);
  check_error({"plan", graph, schedule}, 2, {"s.json", "graph"});
  check_error({"run", graph, "--schedule", schedule}, 2, {"s.json", "graph"});
}

TEST_CASE("a budget that is none says what is accepted") {
  const auto [folder, graph] = Diamond{};
  for (const std::string budget : {"abc", "-1", "-1%", "101x"}) {
    check_error({"solve", graph, "--budget", budget}, 2, {"'" + budget + "'", "%"});
    check_error({"run", graph, "--budget", budget}, 2, {"'" + budget + "'"});
    check_error({"info", graph, "--budget", budget}, 2, {"'" + budget + "'"});
  }
}

TEST_CASE("a budget of 0 is met by a graph without any bytes, and by no other graph") {
  const auto [folder, graph] = Diamond{};
  const std::string empty = folder.write(
      "empty.json", graph_of(R"({"name":"u","size":0,"cost":2,"inputs":[]},{"name":"v","size":0,"inputs":[0]})"));
  for (const std::string budget : {"0", "0%", "0MiB"}) {
    INFO(budget);
    for (const std::string command : {"solve", "info", "run"}) {
      INFO(command);
      CHECK(run_command({command, empty, "-b", budget, "-t", "2"}).err == "");
      CHECK(run_command({command, empty, "-b", budget, "-t", "2", "--json"}).code == 0);
      check_fields(run_command({command, graph, "-b", budget, "-t", "2", "--json"}).json(), {{"exit_code", 3}});
      CHECK(contains(run_command({command, graph, "-b", budget, "-t", "2"}).err, "lower bound"));
    }
    check_fields(run_command({"solve", empty, "--peak-only", "-b", budget, "--json"}).json(),
                 {{"peak_bytes", 0}, {"status", "optimal"}, {"valid", true}});
    check_error({"pareto", graph, "--budgets", budget, "-t", "2"}, 3, {"lower bound"});
    CHECK(run_command({"pareto", empty, "--budgets", budget + ",10", "-t", "2"}).code == 0);
    CHECK(run_command({"simulate", empty, "--random", "10", "-b", budget}).code == 0);
  }
  check_error({"info", "ffn", "--batch", "auto", "-b", "0", "-t", "2"}, 3, {"no batch of 'ffn' fits"});
}

TEST_CASE("sizes that are too large or of no unit are called that") {
  const auto [folder, graph] = Diamond{};
  check_error({"info", graph, "-b", "1e30%"}, 2, {"budget '1e30%' is too large"});
  check_error({"info", graph, "-b", "20000PiB"}, 2, {"budget '20000PiB' is too large"});
  const auto device = [&](const std::string& memory) {
    return run_command({"info", graph, "--device-memory", memory});
  };
  CHECK(device("1PiB").code == 0);
  CHECK(device("1e3GiB").code == 0);
  check_error(device("1e30"), 2, {"--device-memory '1e30' is too large", "give bytes above 0"});
  check_error(device("24GoB"), 2, {"--device-memory '24GoB' has the unknown unit 'GoB'"});
  check_error(device("80%"), 2, {"--device-memory '80%' is a share; give bytes above 0"});
  check_error(device("-1GiB"), 2, {"--device-memory '-1GiB' is negative"});
}

TEST_CASE("a budget below the lower bound is proved infeasible, with what is feasible") {
  const auto [folder, graph] = Diamond{};
  // Node d needs its output and its inputs c and a in memory, which take 50 bytes. So no schedule fits into 49 bytes.
  check_error({"solve", graph, "--solver", "none", "--budget", "49"}, 3, {"50"});
  const Json json = run_json({"solve", graph, "--budget", "49"}, 3);
  check_fields(json, {{"status", "infeasible"}, {"lower_bound_peak_bytes", 50}, {"least_feasible_bytes", 50}});
  CHECK(json["peak_bytes"].is_null());
  CHECK(json["valid"] == false);
  CHECK(contains(json["error"], "lower bound"));
}

TEST_CASE("run counts with sizes rounded up to the alignment, and says so") {
  const auto [folder, graph] = Diamond{};
  const Words words = {"run", graph, "--budget", "700", "--alignment", "256"};
  check_error(words, 3,
              {"700 bytes (91.1% of the baseline peak)\n  sizes are rounded up to --alignment 256\n",
               "lower bound is 768", "suffice is that bound (--budget 768)"});
  const Json json = run_json(words, 3);
  check_fields(json, {{"lower_bound_peak_bytes", 768}, {"least_feasible_bytes", 768}, {"baseline_peak_bytes", 768}});
  const Outcome exact = run_command({"run", graph, "--budget", "49", "--alignment", "1"});
  CHECK_FALSE(contains(exact.err, "rounded"));
}

TEST_CASE("a time limit of 0 is answered with what is known at once") {
  if (no_engine()) return;
  const Folder folder;
  const std::string diamond = folder.write("g.json", diamond_graph()), training = folder / "ffn.json";
  REQUIRE(run_command({"model", "ffn", "--layers", "3", "--batch", "8", "-q", "-o", training}).code == 0);
  for (const std::string solver : {"moccasin", "checkmate", "checkmate-lp", "rotor", "hiremate", "auto"}) {
    for (const std::string& graph : {diamond, training}) {
      if (solver == "rotor" && graph == diamond) continue;
      INFO(solver << " " << graph);
      CHECK(run_json({"solve", graph, "--solver", solver, "-t", "0"})["valid"] == true);
      CHECK(run_command({"solve", graph, "--solver", solver, "-t", "0", "--budget", "100%"}).code == 0);
      const Outcome tight = run_command({"solve", graph, "--solver", solver, "-t", "0", "--budget", "90%"});
      if (tight.code != 0) check_error(tight, 4, {"; not proved impossible", "known to suffice is", "--time-limit"});
      check_error({"solve", graph, "--solver", solver, "-t", "0", "--budget", "1"}, 3, {"lower bound"});
    }
  }
}

TEST_CASE("C_v below 1 is refused") {
  if (no_engine()) return;
  const auto [folder, graph] = Diamond{};
  check_error({"solve", graph, "--solver", "moccasin", "--option", "c=0"}, 2,
              {"option 'c' of solver 'moccasin' is '0'", "from 1 to 1000"});
}

TEST_CASE("a graph whose backward marks are inconsistent is refused by the solvers that read them") {
  if (no_engine()) return;
  const Folder folder;
  // Both graphs have the shape of diamond_graph(). Their input order does not have the least peak. So a solver cannot
  // return the input order without a search, and the search must notice the inconsistent marks.
  const std::string first = R"({"name":"a","size":20,"inputs":[]},{"name":"b","size":20,"inputs":[0]},)";
  const std::string gradient = R"({"name":"g","size":20,"inputs":[1],"backward":true,"forward":1},)";
  const std::string forward_reads_backward =
      folder.write("reads.json", graph_of(first + gradient + R"({"name":"late","size":10,"inputs":[2,0]})"));
  const std::string owned_by_backward = folder.write(
      "owner.json",
      graph_of(first + gradient + R"({"name":"late","size":10,"inputs":[2,0],"backward":true,"forward":2})"));
  for (const std::string solver : {"rotor", "hiremate"}) {
    INFO(solver);
    for (const std::string& graph : {forward_reads_backward, owned_by_backward})
      check_error({"solve", graph, "--solver", solver}, 2, {"'late'", "'g'", "backward"});
  }
  CHECK(run_command({"solve", forward_reads_backward, "-q"}).code == 0);
  check_error({"solve", folder.write("g.json", diamond_graph()), "--solver", "rotor"}, 2,
              {"no node of the graph is marked backward"});
}

TEST_CASE("a solver whose engine is missing says how to get it, and auto goes without") {
  const auto [folder, graph] = Diamond{};
  const Environment no_engines("CAIRN_ENGINES", folder / "none");
  Words missing;
  const auto solvers = run_command({"solvers", "--json"}).json();
  for (const auto& solver : solvers["solvers"]) {
    if (solver["missing"] != "") missing.push_back(solver["name"]);
  }
  if (missing.size() < 4) {
    std::printf("skipped: the system has engines of its own\n");
    return;
  }
  CHECK(missing == Words{"moccasin", "hiremate", "checkmate", "checkmate-lp"});
  for (const std::string& solver : missing) {
    check_error({"solve", graph, "--solver", solver, "--budget", "50"}, 2,
                {"solver '" + solver + "' is not available", "is not installed", "scripts/install_engines.sh"});
  }
  const Outcome table = run_command({"solvers"});
  CHECK(contains(table.out, "missing: HiGHS is not installed; scripts/install_engines.sh installs it"));
  CHECK(run_json({"solve", graph, "--budget", "50"})["peak_bytes"] == 50);
}

TEST_CASE("an unknown name suggests the nearest") {
  const auto [folder, graph] = Diamond{};
  check_error({"slove", graph}, 2, {"'slove'", "'solve'"});
  check_error({"solve", graph, "--solver", "gredy"}, 2, {"'gredy'", "'greedy'"});
  check_error({"model", "resnt50"}, 2, {"'resnt50'", "'resnet50'"});
  check_error({"run", "resnt50", "--budget", "50%"}, 2, {"'resnt50'", "'resnet50'"});
  check_error({"solve", graph, "--budgt", "50%"}, 2, {"--budgt", "'--budget'"});
  check_error({"model", "ffn", "--layer", "3"}, 2, {"--layer", "'--layers'"});
  check_error({"--versoin"}, 2, {"--versoin", "'--version'"});
  check_error({"model", "ffn", "--vocab", "3"}, 2, {"vocab", "ffn"});
  check_error({"run", graph, "--budget", "90%", "--backend", "hots"}, 2, {"'host'"});
  check_error({"bench", "evalute"}, 2, {"'evalute'", "'evaluate'"});
}

TEST_CASE("usage errors are one line") {
  const auto [folder, graph] = Diamond{};
  check_error({"solve"}, 2, {"GRAPH"});
  check_error({"model", "ffn", "--layers", "many"}, 2, {"--layers", "many"});
  check_error({"model", "ffn", "--layers", "-1"}, 2, {"layers"});
  check_error({"solve", graph, "--time-limit", "soon"}, 2, {"soon"});
  for (const std::string command : {"solve", "plan", "run"})
    check_error({command, graph, "--alignment", "0"}, 2, {"--alignment", "0 must be at least 1; see"});
  check_error({"solve", graph, "--work-limit", "-2"}, 2, {"--work-limit", "must be at least 1; see"});
  check_error({"run", graph, "--repeat", "0"}, 2, {"--repeat", "must be at least 1; see"});
  check_error({"run", graph, "--repeat", "few"}, 2, {"--repeat", "few"});
  for (const std::string command : {"info", "solve", "run"}) {
    check_error({command, "--budget=", graph}, 2, {"--budget is empty"});
    check_error({command, graph, "--budget", ""}, 2, {"--budget", "is empty"});
  }
  check_error({"run", graph, "--schedule", "s.json", "--solver", "tw"}, 2, {"--schedule", "--solver"});
  check_error({"info", graph, "more"}, 2, {"'more'"});
  check_error({"info", graph, "--batch", "3"}, 2, {"--batch"});
  check_error({"info", "zzzzzzzz"}, 2, {"'zzzzzzzz'", "neither"});
  check_error({"run", graph}, 2, {"--budget", "--schedule"});
  check_error({"model", "ffn", "--weight-grads", "moon"}, 2, {"'moon'", "arena", "resident"});
  check_error({"plan", graph}, 2, {"SCHEDULE", "--buffers"});
  const std::string csv = folder.write("b.csv", "id,lower,upper,size\na,0,2,10\n");
  check_error({"plan", "--buffers", csv, "--capacity", "50%"}, 2, {"50%", "bytes"});
}

TEST_CASE("errors with --json are an object on stdout too") {
  const Outcome outcome = run_command({"info", "/nonexistent/g.json", "--json"});
  CHECK(outcome.code == 2);
  CHECK(outcome.json()["exit_code"] == 2);
  CHECK(contains(outcome.json()["error"], "/nonexistent/g.json"));
  CHECK(outcome.err.rfind("cairn: error: ", 0) == 0);
}

TEST_CASE("an output that cannot be written is said before the work") {
  const auto [folder, graph] = Diamond{};
  const std::string nowhere = folder / "no/such/folder/out";
  check_error({"solve", graph, "-o", nowhere}, 2, {nowhere, "folder"});
  check_error({"solve", graph, "--plan", nowhere}, 2, {nowhere});
  check_error({"model", "ffn", "-o", nowhere}, 2, {nowhere});
  check_error({"run", graph, "--budget", "90%", "--report", nowhere}, 2, {nowhere});
  check_error({"run", graph, "--budget", "90%", "--trace", nowhere}, 2, {nowhere});
  check_error({"solve", graph, "-o", folder / ""}, 2, {"is a folder"});
}

TEST_CASE("an output may overwrite neither an input nor another output") {
  const auto [folder, graph] = Diamond{};
  const std::string same = folder / "./g.json", out = folder / "out", out_again = folder / "no/../out";
  const std::string schedule = folder / "s.json", csv = folder.write("b.csv", "id,lower,upper,size\na,0,2,10\n");
  REQUIRE(run_command({"solve", graph, "-q", "-o", schedule}).code == 0);
  std::filesystem::create_directory(folder / "no");

  check_error({"solve", graph, "-o", same}, 2, {"-o", same, "GRAPH"});
  check_error({"info", graph, "--dot", same}, 2, {"--dot", same, "GRAPH"});
  check_error({"plan", graph, schedule, "-o", schedule}, 2, {"-o", schedule, "SCHEDULE"});
  check_error({"plan", "--buffers", csv, "--csv", csv}, 2, {"--csv", csv, "--buffers"});
  check_error({"run", graph, "--schedule", schedule, "--trace", schedule}, 2, {"--trace", "--schedule"});

  check_error({"solve", graph, "-o", out, "--plan", out_again}, 2, {"-o", "--plan", out_again});
  check_error({"model", "ffn", "-o", out, "--dot", out}, 2, {"-o", "--dot", out});
  check_error({"run", graph, "--budget", "90%", "--report", out, "--trace", out}, 2, {"--report", "--trace"});
  CHECK(read_text(graph) == diamond_graph());
  CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("a stdout that cannot be written is an error") {
  const auto [folder, graph] = Diamond{};
  for (const Words& words : {Words{"solve", graph}, {"solve", graph, "--json"}, {"--help"}})
    check_error(Child(words, "/dev/full").wait(), 2, {"stdout"});
}

TEST_CASE("a CUDA device that is not there is exit code 5, or the build has none") {
  const auto [folder, graph] = Diamond{};
  setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
  check_error({"run", graph, "--budget", "100%", "--alignment", "1", "--backend", "cuda"}, 5, {"cuda", "host"});
}

TEST_CASE("a graph too large for the machine is exit code 5") {
  const Folder folder;
  const std::string graph =
      folder.write("g.json", graph_of(R"({"name":"huge","size":1000000000000000000,"inputs":[],"keep":true})"));
  check_error({"run", graph, "--budget", "100%"}, 5, {});
}

}  // namespace cairn::tests::bad_input_test
