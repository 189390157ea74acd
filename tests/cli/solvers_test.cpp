// Tests `cairn solvers`, and the options --option, --order and --max-occurrences of `cairn solve`.

#include "cairn/solvers/registry.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace cairn::tests::solvers_test {
namespace {

/// Returns the graph of Figure 1 of Kumar et al. (2019). Its edges are A -> B, B -> C, B -> D, C -> D, A -> E and D ->
/// E. All nodes have size 1 and cost 1.
std::string figure_1() {
  return R"({"format":"cairn.graph","version":1,"name":"figure1","nodes":[
    {"name":"A","size":1,"cost":1,"inputs":[]},
    {"name":"B","size":1,"cost":1,"inputs":[0]},
    {"name":"C","size":1,"cost":1,"inputs":[1]},
    {"name":"D","size":1,"cost":1,"inputs":[1,2]},
    {"name":"E","size":1,"cost":1,"inputs":[0,3]}]})";
}

}  // namespace

TEST_CASE("solvers lists every solver with what it can and its options") {
  const Json json = run_json({"solvers"});
  REQUIRE(json["solvers"].size() == solvers::registry().size());
  for (std::size_t i = 0; i < solvers::registry().size(); ++i) {
    const auto& solver = solvers::registry()[i];
    const Json& told = json["solvers"][i];
    check_fields(
        told,
        {{"name", std::string(solver.name)}, {"recomputes", solver.can.recomputes}, {"missing", solver.why_missing()}});
    CHECK(told["options"].size() == solver.options.size());
  }
  const auto table = run_command({"solvers"});
  CHECK(table.code == 0);
  CHECK(contains(table.out, "--option retain=1"));
}

TEST_CASE("an exact search of an order that uses up its memory does not say that its time ended") {
  const Folder folder;
  const std::string graph = folder / "r.json";
  REQUIRE(run_command({"generate", "random", "--nodes", "40", "--edges", "80", "-o", graph}).code == 0);
  check_fields(run_json({"solve", graph, "--solver", "exact", "--memory", "20KiB", "--time-limit", "10m"}),
               {{"status", "feasible"}, {"stopped", "ended"}, {"timed_out", false}});
}

TEST_CASE("options of a solver reach it, and are refused where it has none such") {
  const Folder folder;
  const std::string graph = folder.write("g.json", figure_1());
  const Json json = run_json({"solve", graph, "--solver", "tw", "--option", "k=1", "--option", "retain=0"});
  CHECK(json["recomputed"].get<int>() > 0);
  CHECK(run_json({"solve", graph, "--solver", "tw", "--option", "k=100"})["recomputed"] == 0);
  check_error({"solve", graph, "--solver", "tw", "--option", "kk=1"}, 2,
              {"solver 'tw' has no option 'kk'", "did you mean 'k'?"});
  check_error({"solve", graph, "--solver", "tw", "--option", "k=x"}, 2, {"whole number"});
  for (const std::string again : {"k=1", "k=2"})
    check_error({"solve", graph, "--solver", "tw", "--option", "k=1", "--option", again}, 2,
                {"--option k is given twice; give it one value"});
  check_error({"solve", graph, "--option", "k=1"}, 2, {"solver 'auto' has no option 'k'"});
}

TEST_CASE("solve says of which schedules its bounds are, and keeps to the scope that is asked for") {
  const Folder folder;
  const std::string graph = folder.write("g.json", figure_1());
  Json json = run_json({"solve", graph, "--budget", "3", "--work-limit", "100000"});
  check_fields(json, {{"scope", "any schedule"},
                      {"lower_bound_scope", "any schedule"},
                      {"status", "optimal"},
                      {"lower_bound_cost", 6},
                      {"lower_bound_cost_scope", "any schedule"},
                      {"cost", 6}});
  json = run_json({"solve", graph, "--max-occurrences", "1"});
  check_fields(json, {{"status", "optimal"},
                      {"scope", "without recomputation"},
                      {"lower_bound_scope", "without recomputation"},
                      {"lower_bound_peak_bytes", 4}});
  json = run_json({"solve", graph, "--budget", "3", "--order", "input", "--work-limit", "100000"});
  check_fields(json, {{"scope", "input order kept"}, {"cost", 6}});
  check_error({"solve", graph, "--budget", "3", "--max-occurrences", "1"}, 3,
              {"'figure1' without recomputation", "lower bound is 4"});
  check_error({"solve", graph, "--solver", "tw", "--order", "input"}, 2,
              {"solver 'tw' cannot keep to: input order kept", "greedy"});
  check_error({"solve", graph, "--order", "random"}, 2, {"--order"});
}

}  // namespace cairn::tests::solvers_test
