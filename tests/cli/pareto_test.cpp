// Tests `cairn pareto`: whether all its outputs describe the same curve, its options, and its messages about bad input.
#include "cairn/core/formats/files.h"
#include "cairn/core/profile.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace cairn::tests::pareto_test {
namespace {

/// Writes the graph of a training step to a file and returns the file's path.
std::string write_ffn(const Folder& folder) {
  const std::string path = folder / "ffn.json";
  REQUIRE(run_command({"model", "ffn", "--layers", "6", "--batch", "64", "--width", "16", "--inputs", "16", "--outputs",
                       "8", "-q", "-o", path})
              .code == 0);
  return path;
}

}  // namespace

TEST_CASE("pareto gives the whole curve, and every output tells the same") {
  const Folder folder;
  const std::string path = write_ffn(folder);
  const core::Graph graph = core::load_graph(path);
  const Words words = {"pareto", path, "--points", "5", "--work-limit", "400000"};
  const Json json = run_json(words + Words{"--csv", folder / "c.csv", "--svg", folder / "c.svg", "--report",
                                           folder / "c.html", "--schedules", folder / "points"});
  const Json& points = json["points"];
  REQUIRE(points.size() == 5);
  CHECK(json["alignment"] == 256);
  check_fields(points[0], {{"cost", json["baseline_cost"]}, {"status", "optimal"}});
  std::string csv =
      "budget_bytes,peak_bytes,planned_bytes,cost,cost_increase_pct,lower_bound_cost,gap_pct,status,knee\n";
  int knees = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Json& point = points[i];
    const std::int64_t budget = point["budget_bytes"], planned = point["planned_bytes"], cost = point["cost"];
    INFO("budget " << budget);
    CHECK(planned <= budget);
    CHECK(point["lower_bound_cost"].get<std::int64_t>() <= cost);
    CHECK(point["gap_pct"].get<double>() >= 0);
    if (i > 0) {
      CHECK(budget < points[i - 1]["budget_bytes"].get<std::int64_t>());
      CHECK(cost >= points[i - 1]["cost"].get<std::int64_t>());
      CHECK(point["lower_bound_cost"] >= points[i - 1]["lower_bound_cost"]);
    }
    const auto file = core::load_schedule(folder / ("points/" + std::to_string(budget) + ".json"), graph);
    const core::Evaluation evaluation = core::evaluate(graph, file.schedule);
    CHECK(evaluation.peak == point["peak_bytes"].get<std::int64_t>());
    CHECK(evaluation.cost == cost);
    knees += point["knee"] == true ? 1 : 0;
    const auto column = [&](const char* key) { return std::to_string(point[key].get<std::int64_t>()); };
    CHECK(contains(read_text(folder / "c.csv"), "\n" + column("budget_bytes") + "," + column("peak_bytes") + "," +
                                                    column("planned_bytes") + "," + column("cost") + ","));
  }
  CHECK(knees == 1);
  CHECK(json["knee"]["knee"] == true);
  CHECK(contains(json["knee_definition"], "straight line"));
  CHECK(read_text(folder / "c.csv").rfind(csv, 0) == 0);
  CHECK(read_text(folder / "c.svg").rfind("<svg xmlns=", 0) == 0);
  CHECK(contains(read_text(folder / "c.svg"), "knee: "));
  const std::string page = read_text(folder / "c.html");
  CHECK(page.rfind("<!DOCTYPE html>", 0) == 0);
  CHECK(contains(page, "(knee)"));

  const auto table = run_command(words);
  CHECK(table.code == 0);
  check_says(table.out, {"<- knee\n", "\nstopped after "});
  CHECK(run_json(words)["points"] == points);  // --work-limit makes results repeatable
}

TEST_CASE("the schedules of a curve are not written to standard output") {
  const auto [folder, graph] = Diamond{};
  check_error({"pareto", graph, "--schedules", "-"}, 2,
              {"--schedules - is standard output, which is not a folder; name one"});
  CHECK_FALSE(std::filesystem::exists("-"));
}

TEST_CASE("the schedules of a curve do not replace a graph that is named like one of them") {
  const auto [folder, graph] = Diamond{};
  const std::string inside = folder / "500.json";
  std::filesystem::copy_file(graph, inside);
  const std::string before = read_text(inside);
  check_error({"pareto", inside, "--schedules", std::filesystem::path(inside).parent_path().string()}, 2,
              {"500.json", "name another folder"});
  CHECK(read_text(inside) == before);
}

TEST_CASE("pareto takes budgets, and says which cannot be met") {
  const auto [folder, graph] = Diamond{};
  const Json points = run_json({"pareto", graph, "--budgets", "49,100%,52"})["points"];
  REQUIRE(points.size() == 3);
  check_fields(points[0], {{"budget_bytes", 60}, {"cost", 10}});
  check_fields(points[1], {{"budget_bytes", 52}, {"peak_bytes", 50}, {"cost", 11}, {"status", "optimal"}});
  CHECK(points[2]["status"] == "infeasible");
  CHECK(points[2]["cost"].is_null());
  CHECK(points[2]["gap_pct"].is_null());
  CHECK(contains(run_command({"pareto", graph, "--budgets", "49,60"}).out, "infeasible"));

  check_error({"pareto", graph, "--budgets", "48,49"}, 3, {"49 bytes", "lower bound is 50 bytes"});
  check_error({"pareto", graph, "--budgets", "55", "--solver", "none"}, 4,
              {"55 bytes", "the least budget known to suffice is 60 bytes (100.0%)", "because the solver finished",
               "--time-limit"});
}

TEST_CASE("pareto with a solver that never recomputes has one point") {
  const Folder folder;
  const Json json = run_json({"pareto", folder.write("g.json", diamond_graph()), "--solver", "order"});
  REQUIRE(json["points"].size() == 1);
  CHECK(json["points"][0]["planned_bytes"] == 60);
  CHECK(json["knee"]["budget_bytes"] == 60);
}

TEST_CASE("pareto --peak-only has budgets of peak") {
  const Folder folder;
  const std::string path = write_ffn(folder);
  const Words words = {"pareto", path, "--budgets", "90%,80%,70%", "--work-limit", "400000", "--peak-only"};
  const Json json = run_json(words + Words{"--csv", folder / "c.csv", "--report", folder / "c.html"});
  CHECK(json["peak_only"] == true);
  const std::int64_t baseline = json["baseline_peak_bytes"];
  const core::Graph graph = core::load_graph(path);
  for (const Json& point : json["points"]) {
    CHECK(point["planned_bytes"].is_null());
    CHECK(point["peak_bytes"] <= point["budget_bytes"]);
  }
  CHECK(json["points"][1]["budget_bytes"].get<std::int64_t>() == (baseline * 80 + 99) / 100);  // sizes are not rounded
  CHECK(contains(run_command(words).out, "90.0%        -        "));
  CHECK(contains(read_text(folder / "c.html"), "\"memory\":\"peak memory\""));

  // The input order of this graph has a peak of 400 bytes, but every plan for it needs more. So a budget of 400 bytes
  // is met only with --peak-only.
  const std::string gaps = folder.write("gaps.json", fragmenting_graph());
  const Words fixed = {"pareto", gaps, "--order", "fixed", "--solver", "none", "--budgets", "400"};
  CHECK(run_command(fixed).code == 4);
  CHECK(run_json(fixed + Words{"--peak-only"})["points"][0]["peak_bytes"] == 400);
}

TEST_CASE("pareto hands a tree decomposition to the solver, and names a backend that there is not") {
  const Folder folder;
  const std::string graph = folder.write("g.json", diamond_graph()), td = folder / "g.td";
  REQUIRE(run_command({"info", graph, "--td", td, "-t", "1s", "-q"}).code == 0);
  const Json json = run_json({"pareto", graph, "--solver", "tw", "--td", td, "--budgets", "60,50"});
  CHECK(json["points"][1]["cost"] == 11);
  check_error({"pareto", graph, "--td", td, "--solver", "greedy"}, 2, {"decomposition"});
  check_error({"pareto", graph, "--td", folder / "none.td"}, 2, {"none.td"});
  check_error({"pareto", graph, "--backend", "abacus"}, 2, {"abacus"});
  check_error({"pareto", graph, "--td", td, "--csv", td}, 2, {"--csv", "--td"});
}

TEST_CASE("pareto ends by a proof, or says that most of its limit brought nothing") {
  const Folder folder;
  const Json proved = run_json({"pareto", folder.write("g.json", diamond_graph()), "--budgets", "60,50"});
  check_fields(proved, {{"stopped", "proved"}, {"passes", 1}});
  const std::string layered = folder / "layered.json";
  run_json({"generate", "random-layered", "--nodes", "30", "--seed", "2", "-o", layered});
  const Json open = run_json({"pareto", layered, "--points", "3", "--work-limit", "3000000"});
  CHECK(open["stopped"] != "ended");
  bool all_proved = true;
  for (const Json& point : open["points"]) all_proved = all_proved && point["status"] == "optimal";
  if (!all_proved) CHECK(open["passes"] >= 2);
}

TEST_CASE("pareto never returns less than it started from") {
  const auto [folder, graph] = Diamond{};
  REQUIRE(run_command({"solve", graph, "--budget", "50", "-q", "-o", folder / "s.json"}).code == 0);
  const Json json = run_json(
      {"pareto", graph, "--solver", "none", "--budgets", "55,60", "--start", folder / "s.json", "--work-limit", "10"});
  CHECK(json["points"][1]["cost"] == 11);
}

TEST_CASE("pareto refuses what it cannot do, in a line") {
  const auto [folder, graph] = Diamond{};
  check_error({"pareto", graph, "--points", "1"}, 2, {"--points"});
  check_error({"pareto", graph, "--points", "many"}, 2, {"--points"});
  check_error({"pareto", graph, "--points", "4", "--budgets", "80%"}, 2, {"--points", "--budgets"});
  check_error({"pareto", graph, "--budgets", "80%,much"}, 2, {"'much'"});
  check_error({"pareto", graph, "--budgets", "80%,-1"}, 2, {"'-1'", "negative"});
  check_error({"pareto", graph, "--csv", folder / "no/c.csv"}, 2, {"no/c.csv", "folder"});
  check_error({"pareto", graph, "--csv", graph}, 2, {"--csv", "GRAPH"});
  check_error({"pareto", graph, "--csv", folder / "x", "--svg", folder / "x"}, 2, {"--csv", "--svg"});
  check_error({"pareto", graph, "--schedules", graph}, 2, {"--schedules", "folder"});
  check_error({"pareto", graph, "--solver", "nobody"}, 2, {"nobody"});
  check_error({"pareto", folder / "none.json"}, 2, {"none.json"});
  check_error({"pareto", graph, "--start", folder / "none.json"}, 2, {"none.json"});
  CHECK(read_text(graph) == diamond_graph());
}

TEST_CASE("Ctrl-C keeps the points that are known and exits with 130") {
  const Folder folder;
  const std::string path = folder / "large.json";
  REQUIRE(run_command({"generate", "random", "--nodes", "4000", "--edges", "8000", "-q", "-o", path}).code == 0);
  const Outcome outcome = interrupted({"pareto", path, "--time-limit", "10m", "--csv", folder / "c.csv", "--json"});
  CHECK(contains(outcome.err, "interrupted; "));
  const Json json = outcome.json();
  check_fields(json, {{"interrupted", true}, {"stopped", "interrupted"}});
  CHECK(read_text(folder / "c.csv").rfind("budget_bytes,", 0) == 0);
}

}  // namespace cairn::tests::pareto_test
