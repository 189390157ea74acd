// Tests the goals of solve: a plan within a budget, a peak within a budget or within a cost, the least peak, or the
// knee of the curve of memory and cost. Also tests the schedule that is given by --start.
#include "cairn/core/formats/files.h"
#include "cairn/core/plan.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/text.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace cairn::tests::objective_test {
namespace {

const Words kSixLayers = {"ffn", "--layers", "6", "--batch", "64", "--width", "16", "--inputs", "16", "--outputs", "8"};

}  // namespace

TEST_CASE("solve without a budget returns the knee, and says what lies beside it") {
  const Folder folder;
  const Words words = Words{"solve"} + kSixLayers + Words{"--work-limit", "400000", "-o", folder / "s.json"};
  const Json json = run_json(words);
  CHECK(json["objective"] == "knee");
  CHECK(json["budget_bytes"].is_null());
  const Json& knee = json["knee"];
  check_fields(knee, {{"planned_bytes", json["planned_bytes"]}, {"cost", json["cost"]}});
  CHECK(json["planned_bytes"] <= knee["budget_bytes"]);
  CHECK(knee["more_memory"]["planned_bytes"] > knee["planned_bytes"]);
  CHECK(knee["more_memory"]["cost"] < knee["cost"]);
  CHECK(knee["less_memory"]["planned_bytes"] < knee["planned_bytes"]);
  CHECK(knee["less_memory"]["cost"] > knee["cost"]);
  const auto table = run_command(words);
  check_says(table.out, {"\nknee ", "--budget min is the least budget known"});

  const Json least = run_json(Words{"solve"} + kSixLayers + Words{"--work-limit", "400000", "--budget", "min"});
  CHECK(least["objective"] == "least planned memory");
  CHECK_FALSE(least.contains("knee"));
  CHECK(least["budget_bytes"].is_null());
  CHECK(least["peak_bytes"] < json["peak_bytes"]);
  CHECK(least["cost"] > json["cost"]);
  CHECK(least["gap_of"] == "planned bytes");
}

TEST_CASE("the knee says what is proved of it: that nothing of its memory costs less, or how far it may be from that") {
  const auto [folder, graph] = Diamond{};
  // The knee is the point of the curve of memory and cost that lies farthest below the line between the ends of the
  // curve. For this graph, no point lies below the line, so the knee is the baseline, i.e. the end of least cost.
  const Json cheapest = run_json({"solve", graph});
  check_fields(cheapest,
               {{"status", "optimal"},
                {"stopped", "proved"},
                {"proved", "no schedule costs less, whatever memory it has; one of this cost may have a lower peak"},
                {"gap_of", "cost"}});

  const Words words = Words{"solve"} + kSixLayers + Words{"--work-limit", "400000"};
  const Json json = run_json(words);
  const auto knee = json["knee"]["budget_bytes"].get<std::int64_t>();
  const std::string within = "no schedule whose plan fits into " + core::format_bytes(knee) + " (" +
                             std::to_string(knee) + " bytes) costs less";
  CHECK((json["gap_pct"] == 0) == (json["status"] == "optimal"));
  CHECK(json["proved"] == (json["status"] == "optimal" ? Json(within) : Json(nullptr)));
  CHECK(contains(run_command(words).out, within));
  // The lower bound on the cost holds for a budget equal to the knee's memory. So no schedule within that budget may
  // cost less.
  const Json there =
      run_json(Words{"solve"} + kSixLayers +
               Words{"--work-limit", "400000", "--budget", std::to_string(json["planned_bytes"].get<std::int64_t>())});
  CHECK(json["lower_bound_cost"] <= there["cost"]);
}

TEST_CASE("the least memory is one word away, and what other solvers look for without a budget") {
  const auto [folder, graph] = Diamond{};
  for (const Words& how : {Words{"--budget", "min"}, Words{"--solver", "greedy"}, Words{"-b", "min", "-s", "tw"}}) {
    const Json json = run_json(Words{"solve", graph} + how);
    CHECK(json["objective"] == (how[0] == "--solver" ? "least peak" : "least planned memory"));
    check_fields(json, {{"peak_bytes", 50}, {"cost", 11}});
  }
  const Json proved = run_json({"solve", graph, "--budget", "min"});
  check_fields(proved, {{"stopped", "proved"},
                        {"proved", "no schedule has a lower plan, and none that fits into it costs less"}});
  const Json peak = run_json({"solve", graph, "--budget", "min", "--peak-only"});
  check_fields(peak, {{"objective", "least peak"},
                      {"proved", "no schedule has a lower peak, and none of this peak costs less"}});
  check_error({"solve", graph, "--peak-only"}, 2, {"--peak-only", "--budget"});
  check_error({"solve", graph, "--budget", "most"}, 2, {"'most'"});
}

TEST_CASE("the least peak costs no more than other solvers need for it") {
  const Words model = {"resnet18", "--batch", "8", "--image", "64"};
  const Json least = run_json(Words{"solve"} + model + Words{"--budget", "min", "--work-limit", "3000000"});
  const Words within = {"--budget", std::to_string(least["peak_bytes"].get<std::int64_t>()), "--peak-only"};
  for (const std::string solver : {"rotor", "greedy", "tw"}) {
    INFO(solver);
    const auto other = run_command(Words{"solve"} + model + within + Words{"--solver", solver, "--json"});
    if (other.code == 0) CHECK(least["cost"] <= other.json()["cost"]);
  }
}

TEST_CASE("the least peak within a cost") {
  const auto [folder, graph] = Diamond{};
  for (const std::string cost : {"0%", "9.9%", "1x", "10"}) {
    INFO(cost);
    const Json json = run_json({"solve", graph, "--max-cost", cost});
    check_fields(json, {{"peak_bytes", 60}, {"cost", 10}, {"max_cost", 10}});
    // Without recomputation, the peak is 60. With recomputation, the cost would exceed the limit.
    CHECK(json["status"] == "optimal");
    check_fields(json, {{"proved", "no schedule that costs no more than 10 cost units has a lower peak"},
                        {"gap_of", "peak"},
                        {"gap_pct", 0}});
  }
  for (const std::string cost : {"10%", "1.1x", "11", "15%"}) {
    INFO(cost);
    const Json json = run_json({"solve", graph, "--max-cost", cost});
    check_fields(json, {{"objective", "least peak within a cost"},
                        {"peak_bytes", 50},
                        {"cost", 11},
                        {"max_cost", 11},
                        {"status", "optimal"}});
  }
  // Solver none proves nothing, so a gap remains between the peak (60 bytes) and its lower bound (50 bytes).
  const Words open = {"solve", graph, "--max-cost", "15%", "--solver", "none"};
  check_fields(run_json(open), {{"status", "feasible"}, {"gap_of", "peak"}});
  CHECK(run_json(open)["gap_pct"].get<double>() == Approx(20));
  CHECK(run_json(open)["proved"].is_null());
  CHECK(contains(run_command(open).out,
                 "\ngap          peak at most 20.00% above the optimum: no schedule that costs no more "
                 "than 11 cost units has a peak below 50 bytes\n"));
  // Solver greedy finds only one schedule, and this schedule costs too much. So the answer is the baseline.
  CHECK(run_json({"solve", graph, "--max-cost", "0%", "--solver", "greedy"})["peak_bytes"] == 60);
  CHECK(contains(run_command({"solve", graph, "--max-cost", "10%"}).out, "\ncost limit   11 cost units (+10.00%)\n"));

  check_error({"solve", graph, "--max-cost", "9"}, 3, {"costs 9 cost units or less", "costs 10"});
  check_error({"solve", graph, "--max-cost", "10%", "--budget", "80%"}, 2, {"--max-cost", "--budget"});
  for (const std::string cost : {"cheap", "10 %", "-5%", "5%%", "nan", "inf", "1e30", "0x20", "0x1p3x", "10.5"}) {
    INFO(cost);
    check_error({"solve", graph, "--max-cost=" + cost}, 2, {"--max-cost '" + cost + "'", "10%"});
  }
}

TEST_CASE("a budget is on the plan, and without --peak-only one that does not fit is no success") {
  const Folder folder;
  const std::string graph = folder.write("g.json", fragmenting_graph()), output = folder / "s.json";
  const Words fixed = {graph, "--order", "fixed", "--solver", "none", "--budget", "400"};
  check_error(Words{"solve"} + fixed + Words{"-o", output}, 4,
              {"whose plan fits into 400 bytes (", "the lowest plan needs 500 bytes (", "the lower bound is",
               "the search ended", "--peak-only", output});
  const core::Graph loaded = core::load_graph(graph);
  CHECK(core::evaluate(loaded, core::load_schedule(output, loaded).schedule).peak == 400);
  const Json json = run_json(Words{"solve"} + fixed, 4);
  check_fields(json, {{"status", "not_found"}, {"planned_bytes", 500}, {"plan_fits", false}});
  CHECK(run_json(Words{"solve"} + fixed + Words{"--peak-only"})["peak_bytes"] == 400);
  check_error(Words{"run"} + fixed + Words{"--backend", "host"}, 4, {"500 bytes"});

  // Without --order fixed, the steps may run in another order than the input order, and such an order has a plan that
  // fits.
  const Words any = {graph, "--solver", "none", "--budget", "400"};
  const Json fits = run_json(Words{"solve"} + any + Words{"-o", output, "--plan", folder / "p.json"});
  check_fields(fits, {{"planned_bytes", 400}, {"cost_increase_pct", 0}});
  const auto schedule = core::load_schedule(output, loaded).schedule;
  CHECK(core::check_plan(loaded, schedule, core::load_plan(folder / "p.json", loaded)).empty());
  CHECK(run_command(Words{"run"} + any + Words{"--backend", "host"}).code == 0);
}

TEST_CASE("what solve says fits runs within the same budget") {
  const Folder folder;
  const std::vector<Words> graphs = {
      {folder.write("g.json", diamond_graph())},
      {"unet", "--batch", "1", "--image", "16", "--width", "4", "--depth", "2", "--classes", "3"},
      {"transformer", "--batch", "1", "--seq", "4", "--layers", "1", "--width", "8", "--heads", "2", "--ff", "16",
       "--vocab", "11"},
      {"gpt2", "--batch", "1", "--layers", "2", "--width", "8", "--heads", "2", "--seq", "4", "--vocab", "11"}};
  int fitted = 0;
  for (const Words& graph : graphs) {
    for (const std::string budget : {"100%", "85%", "70%", "55%"}) {
      INFO(graph.front() << " within " << budget);
      const Words asked = graph + Words{"--budget", budget, "--work-limit", "200000"};
      const auto solved = run_command(Words{"solve"} + asked + Words{"-o", folder / "s.json", "--json"});
      const auto ran = run_command(Words{"run"} + asked + Words{"--backend", "host", "--json"});
      CHECK(solved.code == ran.code);
      check_fields(solved.json(),
                   {{"budget_bytes", ran.json()["budget_bytes"]}, {"alignment", ran.json()["alignment"]}});
      if (solved.code != 0) continue;
      ++fitted;
      CHECK(solved.json()["planned_bytes"] <= solved.json()["budget_bytes"]);
      const Json again = run_json(Words{"run"} + graph +
                                  Words{"--schedule", folder / "s.json", "--budget", budget, "--backend", "host"});
      CHECK(again["scheduled"]["planned_bytes"] <= again["budget_bytes"]);
    }
  }
  CHECK(fitted >= 10);
}

TEST_CASE("a start is never lost") {
  const Folder folder;
  const std::string graph = folder.write("g.json", diamond_graph()), start = folder / "s.json";
  REQUIRE(run_command({"solve", graph, "--budget", "50", "-q", "-o", start}).code == 0);
  // Solver none returns the input order, which exceeds this budget. So the answer must be the schedule given by
  // --start.
  const Words words = {graph, "--solver", "none", "--budget", "55", "--start", start};
  const Json json = run_json(Words{"solve"} + words);
  check_fields(json, {{"peak_bytes", 50}, {"cost", 11}});
  CHECK(run_json(Words{"run"} + words + Words{"--backend", "host"})["scheduled"]["planned_bytes"] == 50);
  CHECK(run_json({"solve", graph, "--budget", "min", "--start", start, "--time-limit", "0"})["peak_bytes"] == 50);
}

TEST_CASE("a start that is none is told in a line") {
  const Folder folder;
  const std::string graph = folder.write("g.json", diamond_graph()), start = folder / "s.json";
  REQUIRE(run_command({"solve", graph, "--budget", "50", "-q", "-o", start}).code == 0);
  const std::string other = folder.write("other.json", fragmenting_graph());
  std::string text = read_text(start);
  text.replace(text.find("\"steps\""), text.find(']') - text.find("\"steps\""), "\"steps\":[0,1");
  const std::string short_one = folder.write("short.json", text);
  for (const Words& command : {Words{"solve", "--budget", "90%"}, Words{"run", "--budget", "90%"}, Words{"pareto"}}) {
    INFO(command.front());
    check_error(command + Words{graph, "--start", folder / "none.json"}, 2, {"none.json"});
    check_error(command + Words{other, "--start", start}, 2, {start, "graph"});
    check_error(command + Words{graph, "--start", short_one}, 2, {short_one, "never computed"});
    check_error(command + Words{graph, "--start", start, "--max-occurrences", "1"}, 2,
                {"--start", start, "without recomputation"});
    check_error(command + Words{graph, "--start", start, "--solver", "order"}, 2,
                {"--start", start, "without recomputation", "--solver order"});
  }
  check_error({"run", graph, "--schedule", start, "--start", start}, 2, {"--schedule", "--start"});
}

TEST_CASE("run takes what solve takes: the least peak, and the least within a cost") {
  const auto [folder, graph] = Diamond{};
  for (const Words& how : {Words{"--budget", "min"}, Words{"--max-cost", "10%"}}) {
    INFO(how.back());
    const Json solved = run_json(Words{"solve", graph} + how);
    const Json ran = run_json(Words{"run", graph, "--backend", "host"} + how);
    CHECK(ran["identical"] == true);
    CHECK(ran["scheduled"]["planned_bytes"] == solved["planned_bytes"]);
    for (const char* key : {"objective", "max_cost", "status", "stopped", "gap_pct", "gap_of", "proved"}) {
      INFO(key);
      CHECK(ran[key] == solved[key]);
    }
  }
  CHECK(run_json({"run", graph, "--backend", "host", "--max-cost", "0%"})["scheduled"]["planned_bytes"] == 60);
  check_error({"run", graph, "--backend", "host", "--max-cost", "9"}, 3, {"costs 9 cost units or less", "costs 10"});
  check_error({"run", graph, "--budget", "50", "--max-cost", "9"}, 2, {"--max-cost", "--budget"});
  check_error({"run", graph, "--max-cost", "cheap"}, 2, {"--max-cost 'cheap'"});
  check_error({"run", graph}, 2, {"--budget", "--max-cost", "--schedule"});
  REQUIRE(run_command({"solve", graph, "--budget", "50", "-q", "-o", folder / "s.json"}).code == 0);
  for (const Words& how : {Words{"--budget", "min"}, Words{"--max-cost", "10%"}})
    check_error(Words{"run", graph, "--schedule", folder / "s.json"} + how, 2, {"--schedule", how.front()});
}

TEST_CASE("order fixed is order input by another name") {
  const auto [folder, graph] = Diamond{};
  Json fixed = run_json({"solve", graph, "--order", "fixed", "--budget", "50", "-o", folder / "1.json"});
  Json input = run_json({"solve", graph, "--order", "input", "--budget", "50", "-o", folder / "2.json"});
  CHECK(read_text(folder / "1.json") == read_text(folder / "2.json"));
  CHECK(fixed["scope"] == input["scope"]);
  check_error({"solve", graph, "--order", "some"}, 2, {"--order", "fixed"});
}

TEST_CASE("solve says how far its cost may be from the least, and why it stopped") {
  const auto [folder, graph] = Diamond{};
  const Json proved = run_json({"solve", graph, "--budget", "50"});
  check_fields(proved, {{"status", "optimal"},
                        {"stopped", "proved"},
                        {"gap_pct", 0},
                        {"gap_of", "cost"},
                        {"proved", "no schedule within the budget costs less"}});
  const auto table = run_command({"solve", graph, "--budget", "50"});
  CHECK(contains(table.out, "ended by a proof that nothing is better"));
  CHECK_FALSE(contains(table.out, "\ngap "));
  CHECK(contains(table.out, "\nproved       no schedule within the budget costs less\n"));

  const Json open = run_json({"solve", graph, "--budget", "50", "--solver", "greedy"});
  CHECK(open["status"] == "feasible");
  CHECK(open["gap_pct"].get<double>() == Approx(10));
  CHECK(
      contains(run_command({"solve", graph, "--budget", "50", "--solver", "greedy"}).out,
               "\ngap          cost at most 10.00% above the optimum: no schedule within the budget costs less than 10 "
               "cost units\n"));
  CHECK(contains(run_command({"run", graph, "--budget", "50", "--solver", "greedy", "--backend", "host"}).out,
                 "cost at most 10.00% above the optimum"));
}

}  // namespace cairn::tests::objective_test
