// Tests `cairn generate`, the option --forward, and `cairn solve` with the solvers that never recompute.

#include "cairn/core/formats/files.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace cairn::tests::order_test {
namespace {

TEST_CASE("every generated graph is solved to a proof by the solver of its class and by order") {
  const Folder folder;
  const std::vector<std::pair<std::string, std::string>> classes = {
      {"pumpkin", "pumpkin"},         {"valley-pumpkin", "pumpkin"}, {"rising-pumpkin", "pumpkin"},
      {"three-partition", "pumpkin"}, {"in-tree", "in-tree"},        {"out-tree", "out-tree"},
      {"series-parallel", "sp"},      {"starborescence", "sp"}};
  for (const auto& [family, solver] : classes) {
    INFO(family);
    const std::string graph = folder / (family + ".json");
    const Json made = run_json({"generate", family, "--nodes", "40", "--seed", "3", "-o", graph});
    CHECK(made["nodes"] == core::load_graph(graph).node_count());
    const Json solved = run_json({"solve", graph, "--solver", solver, "-o", folder / "s.json"});
    check_fields(solved, {{"status", "optimal"},
                          {"recomputed", 0},
                          {"recomputes", false},
                          {"peak_bytes", solved["lower_bound_peak_bytes"]}});
    CHECK(run_json({"solve", graph, "--solver", "order"})["peak_bytes"] == solved["peak_bytes"]);
    if (family == "three-partition") CHECK(solved["peak_bytes"] == made["feasible_peak_bytes"]);
  }
  const Json again = run_json({"generate", "random", "--nodes", "20", "--edges", "30", "--seed", "5"});
  CHECK(run_json({"generate", "random", "--nodes", "20", "--edges", "30", "--seed", "5"}) == again);
}

TEST_CASE("generate says what is wrong with its options") {
  check_error({"generate", "pumpkins"}, 2, {"'pumpkins'", "did you mean 'pumpkin'"});
  check_error({"generate", "three-partition", "--numbers", "1,2,3,4"}, 2, {"3m numbers", "4"});
  check_error({"generate", "three-partition", "--numbers", "1,1,10,1,1,1"}, 2, {"sum"});
  check_error({"generate", "random", "--nodes", "3", "--edges", "9"}, 2, {"pairs"});
  check_error({"generate", "in-tree", "--nodes", "0"}, 2, {"--nodes"});
  check_error({"generate", "random-layered", "--nodes", "2"}, 2, {"at least 3 nodes"});
  check_error({"generate", "random-layered", "--width", "0"}, 2, {"width"});
  check_error({"generate", "random-layered", "--skip-density", "1"}, 2, {"skip connections"});
  check_error({"generate", "random-layered", "--nodes", "10000000", "--edge-density", "1"}, 2, {"edges", "20000000"});
}

TEST_CASE("a solver of a class names the node that breaks it") {
  const Folder folder;
  const std::string graph = folder.write("g.json", R"({"format":"cairn.graph","version":1,"name":"g","nodes":[
    {"name":"a","size":1,"inputs":[]},{"name":"b","size":1,"inputs":[]},{"name":"c","size":1,"inputs":[0,1]},
    {"name":"d","size":1,"inputs":[0]},{"name":"e","size":1,"inputs":[1]},{"name":"f","size":1,"inputs":[2,3,4]}]})");
  check_error({"solve", graph, "--solver", "in-tree"}, 2, {"in-tree", "'a' has 2 readers", "--solver order"});
  check_error({"solve", graph, "--solver", "out-tree"}, 2, {"out-tree", "'c' has 2 inputs"});
  check_error({"solve", graph, "--solver", "pumpkin"}, 2, {"pumpkin", "sources", "'a'", "'b'"});
  check_error({"solve", graph, "--solver", "sp"}, 2,
              {"series-parallel", "nodes remain after all series and parallel reductions"});
  CHECK(run_json({"solve", graph, "--solver", "order"})["status"] == "optimal");
}

TEST_CASE("a pumpkin too wide for the table says what it needs before it starts") {
  const Folder folder;
  const std::string graph = folder / "g.json";
  run_json({"generate", "pumpkin", "--branches", "40", "--length", "4", "-o", graph});
  check_error({"solve", graph, "--solver", "pumpkin"}, 2, {"40 readers", "needs", "2.00 GiB allowed"});
  check_error({"solve", graph, "--solver", "pumpkin", "--memory", "64MiB"}, 2, {"64.00 MiB allowed", "--memory"});
  check_error({"solve", graph, "--solver", "pumpkin", "--memory", "lots"}, 2, {"lots"});
  // Solver order accepts every graph, and returns the best order that it finds within the time limit.
  const Json json = run_json({"solve", graph, "--solver", "order", "-t", "1s"});
  CHECK(json["valid"] == true);
  CHECK(json["peak_bytes"] <= json["baseline_peak_bytes"]);
}

TEST_CASE("an order solver's infeasible is about orders alone") {
  const auto [folder, graph] = Diamond{};
  check_error({"solve", graph, "--solver", "order", "--budget", "50"}, 3, {"without recomputation", "--solver auto"});
  CHECK(run_json({"solve", graph, "--solver", "auto", "--budget", "50"})["recomputed"] == 1);
  const Json info = run_json({"info", graph, "--solver", "order", "--budget", "50"}, 3);
  check_fields(info, {{"fits", false}, {"fits_scope", "without recomputation"}, {"fits_with_solver", "auto"}});
  CHECK(contains(info["verdict"], "fits with --solver auto"));
}

TEST_CASE("the flag --forward leaves the backward nodes out of models and files") {
  const Folder folder;
  const std::string file = folder / "g.json";
  const Words ffn = {"ffn", "--batch", "4", "--layers", "3", "--width", "8"};
  run_json(Words{"model"} + ffn + Words{"-o", file});
  const auto graph = core::load_graph(file);
  std::int64_t forward = 0;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) forward += graph.backward(v) ? 0 : 1;
  const Json from_model = run_json(Words{"solve"} + ffn + Words{"--forward", "--solver", "order"});
  check_fields(from_model, {{"nodes", forward}, {"status", "optimal"}});
  const Json from_file = run_json({"solve", file, "--forward", "--solver", "order"});
  CHECK(from_file["fingerprint"] == from_model["fingerprint"]);
  const Json ran = run_json(Words{"run"} + ffn + Words{"--forward", "--budget", "110%", "--backend", "host"});
  CHECK(ran["identical"] == true);
}

}  // namespace

}  // namespace cairn::tests::order_test
