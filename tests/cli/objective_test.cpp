// What solve looks for: a plan within a budget, a peak within a budget or a cost, the least peak, or the knee; and
// where it starts from.
#include "cairn/core/formats/files.h"
#include "cairn/core/plan.h"
#include "cairn/core/profile.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace {

using namespace cairn;
using test::check_error;
using test::diamond_graph;
using test::Folder;
using test::run_command;
using test::run_json;
using test::operator+;
using test::Words;
using Json = nlohmann::json;

/// In the input order 400 bytes are live at once but no plan is lower than 500: a and c must lie together, where z was;
/// so must a and b, for e, and c and d, for w. Another order of the same steps has a plan of 400.
std::string fragmenting_graph() {
  core::GraphBuilder builder("gaps");
  const auto add = [&](const char* name, std::int64_t size, const std::vector<core::NodeId>& inputs = {}) {
    core::Node node;
    node.name = name;
    node.size = size;
    node.cost = 1;
    for (const core::NodeId input : inputs) node.inputs.emplace_back(input);
    return builder.add(std::move(node));
  };
  const auto y = add("y", 200), z = add("z", 200);
  add("z read", 0, {z});
  const auto a = add("a", 100), c = add("c", 100);
  add("y read", 0, {y});
  const auto b = add("b", 100), d = add("d", 100);
  add("a, b read", 0, {a, b});
  const auto e = add("e", 200);
  add("c, d read", 0, {c, d});
  const auto w = add("w", 200);
  add("e, w read", 0, {e, w});
  return core::graph_to_json(builder.build());
}

}  // namespace

TEST_CASE("solve without a budget returns the knee, and says what lies beside it") {
  const Folder folder;
  const Words model = {"ffn", "--layers", "6", "--batch", "64", "--width", "16", "--inputs", "16", "--outputs", "8"};
  const Words words = Words{"solve"} + model + Words{"--work-limit", "400000", "-o", folder / "s.json"};
  const Json json = run_json(words);
  CHECK(json["objective"] == "knee");
  CHECK(json["budget_bytes"].is_null());
  const Json& knee = json["knee"];
  CHECK(knee["planned_bytes"] == json["planned_bytes"]);
  CHECK(knee["cost"] == json["cost"]);
  CHECK(json["planned_bytes"] <= knee["budget_bytes"]);
  CHECK(knee["more_memory"]["planned_bytes"] > knee["planned_bytes"]);
  CHECK(knee["more_memory"]["cost"] < knee["cost"]);
  CHECK(knee["less_memory"]["planned_bytes"] < knee["planned_bytes"]);
  CHECK(knee["less_memory"]["cost"] > knee["cost"]);
  const auto table = run_command(words);
  CHECK(table.out.find("\nknee ") != std::string::npos);
  CHECK(table.out.find("--budget min is the least peak") != std::string::npos);

  const Json least = run_json(Words{"solve"} + model + Words{"--work-limit", "400000", "--budget", "min"});
  CHECK(least["objective"] == "least peak");
  CHECK_FALSE(least.contains("knee"));
  CHECK(least["budget_bytes"].is_null());
  CHECK(least["peak_bytes"] < json["peak_bytes"]);
  CHECK(least["cost"] > json["cost"]);
}

TEST_CASE("the least peak is one word away, and what other solvers look for without a budget") {
  const Folder folder;
  const std::string graph = folder.write("g.json", diamond_graph());
  for (const Words& how : {Words{"--budget", "min"}, Words{"--solver", "greedy"}, Words{"-b", "min", "-s", "tw"}}) {
    const Json json = run_json(Words{"solve", graph} + how);
    CHECK(json["objective"] == "least peak");
    CHECK(json["peak_bytes"] == 50);
    CHECK(json["cost"] == 11);
  }
  check_error(run_command({"solve", graph, "--budget", "min", "--peak-only"}), 2, {"--peak-only", "--budget"});
  check_error(run_command({"solve", graph, "--peak-only"}), 2, {"--peak-only", "--budget"});
  check_error(run_command({"solve", graph, "--budget", "most"}), 2, {"'most'"});
}

TEST_CASE("the least peak within a cost") {
  const Folder folder;
  const std::string graph = folder.write("g.json", diamond_graph());
  for (const std::string cost : {"0%", "9.9%", "1x", "10"}) {
    INFO(cost);
    const Json json = run_json({"solve", graph, "--max-cost", cost});
    CHECK(json["peak_bytes"] == 60);
    CHECK(json["cost"] == 10);
    CHECK(json["max_cost"] == 10);
  }
  for (const std::string cost : {"10%", "1.1x", "11", "15%"}) {
    INFO(cost);
    const Json json = run_json({"solve", graph, "--max-cost", cost});
    CHECK(json["objective"] == "least peak within a cost");
    CHECK(json["peak_bytes"] == 50);
    CHECK(json["cost"] == 11);
    CHECK(json["max_cost"] == 11);
    CHECK(json["status"] == "optimal");
  }
  // A solver of one schedule, which is too costly, still leaves the baseline.
  CHECK(run_json({"solve", graph, "--max-cost", "0%", "--solver", "greedy"})["peak_bytes"] == 60);
  CHECK(run_command({"solve", graph, "--max-cost", "10%"}).out.find("\ncost limit   11 (+10.00%)\n") !=
        std::string::npos);

  check_error(run_command({"solve", graph, "--max-cost", "9"}), 3, {"costs 9 or less", "costs 10"});
  check_error(run_command({"solve", graph, "--max-cost", "10%", "--budget", "80%"}), 2, {"--max-cost", "--budget"});
  for (const std::string cost : {"cheap", "10 %", "-5%", "5%%", "nan", "inf", "1e30"}) {
    INFO(cost);
    check_error(run_command({"solve", graph, "--max-cost=" + cost}), 2, {"--max-cost '" + cost + "'", "10%"});
  }
}

TEST_CASE("a budget is on the plan, and without --peak-only one that does not fit is no success") {
  const Folder folder;
  const std::string graph = folder.write("g.json", fragmenting_graph()), output = folder / "s.json";
  const Words fixed = {graph, "--order", "fixed", "--solver", "none", "--budget", "400"};
  check_error(run_command(Words{"solve"} + fixed + Words{"-o", output}), 4,
              {"whose plan fits into 400 bytes", "the lowest plan needs 500 bytes", "--peak-only", output});
  const core::Graph loaded = core::load_graph(graph);
  CHECK(core::evaluate(loaded, core::load_schedule(output, loaded).schedule).peak == 400);
  const Json json = run_json(Words{"solve"} + fixed, 4);
  CHECK(json["status"] == "not_found");
  CHECK(json["planned_bytes"] == 500);
  CHECK(json["plan_fits"] == false);
  CHECK(run_json(Words{"solve"} + fixed + Words{"--peak-only"})["peak_bytes"] == 400);
  check_error(run_command(Words{"run"} + fixed + Words{"--backend", "host"}), 4, {"500 bytes"});

  // Any order may run: one of the same steps has a plan that fits.
  const Words any = {graph, "--solver", "none", "--budget", "400"};
  const Json fits = run_json(Words{"solve"} + any + Words{"-o", output, "--plan", folder / "p.json"});
  CHECK(fits["planned_bytes"] == 400);
  CHECK(fits["cost_increase_pct"] == 0);
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
      CHECK(solved.json()["budget_bytes"] == ran.json()["budget_bytes"]);
      CHECK(solved.json()["alignment"] == ran.json()["alignment"]);
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
  // The input order alone is above this budget.
  const Words words = {graph, "--solver", "none", "--budget", "55", "--start", start};
  const Json json = run_json(Words{"solve"} + words);
  CHECK(json["peak_bytes"] == 50);
  CHECK(json["cost"] == 11);
  CHECK(run_json(Words{"run"} + words + Words{"--backend", "host"})["scheduled"]["planned_bytes"] == 50);
  CHECK(run_json({"solve", graph, "--budget", "min", "--start", start, "--time-limit", "0"})["peak_bytes"] == 50);
}

TEST_CASE("a start that is none is told in a line") {
  const Folder folder;
  const std::string graph = folder.write("g.json", diamond_graph()), start = folder / "s.json";
  REQUIRE(run_command({"solve", graph, "--budget", "50", "-q", "-o", start}).code == 0);
  const std::string other = folder.write("other.json", fragmenting_graph());
  std::string text = test::read_text(start);
  text.replace(text.find("\"steps\""), text.find(']') - text.find("\"steps\""), "\"steps\":[0,1");
  const std::string short_one = folder.write("short.json", text);
  for (const Words& command : {Words{"solve", "--budget", "90%"}, Words{"run", "--budget", "90%"}, Words{"pareto"}}) {
    INFO(command.front());
    check_error(run_command(command + Words{graph, "--start", folder / "none.json"}), 2, {"none.json"});
    check_error(run_command(command + Words{other, "--start", start}), 2, {start, "graph"});
    check_error(run_command(command + Words{graph, "--start", short_one}), 2, {short_one, "never computed"});
    check_error(run_command(command + Words{graph, "--start", start, "--max-occurrences", "1"}), 2,
                {"--start", start, "without recomputation"});
  }
  check_error(run_command({"run", graph, "--schedule", start, "--start", start}), 2, {"--schedule", "--start"});
  check_error(run_command({"solve", graph, "--start", start, "-o", start}), 2, {"-o", "--start"});
}

TEST_CASE("order fixed is order input by another name") {
  const Folder folder;
  const std::string graph = folder.write("g.json", diamond_graph());
  Json fixed = run_json({"solve", graph, "--order", "fixed", "--budget", "50", "-o", folder / "1.json"});
  Json input = run_json({"solve", graph, "--order", "input", "--budget", "50", "-o", folder / "2.json"});
  CHECK(test::read_text(folder / "1.json") == test::read_text(folder / "2.json"));
  CHECK(fixed["scope"] == input["scope"]);
  check_error(run_command({"solve", graph, "--order", "some"}), 2, {"--order", "fixed"});
}

TEST_CASE("solve says how far its cost may be from the least, and why it stopped") {
  const Folder folder;
  const std::string graph = folder.write("g.json", diamond_graph());
  const Json proved = run_json({"solve", graph, "--budget", "50"});
  CHECK(proved["status"] == "optimal");
  CHECK(proved["stopped"] == "proved");
  CHECK(proved["gap_pct"] == 0);
  const auto table = run_command({"solve", graph, "--budget", "50"});
  CHECK(table.out.find("ended by a proof that nothing is better") != std::string::npos);
  CHECK(table.out.find("\ngap ") == std::string::npos);

  const Json open = run_json({"solve", graph, "--budget", "50", "--solver", "greedy"});
  CHECK(open["status"] == "feasible");
  CHECK(open["gap_pct"].get<double>() == Approx(10));
  CHECK(
      run_command({"solve", graph, "--budget", "50", "--solver", "greedy"})
          .out.find("\ngap          at most 10.00% above the optimum: no schedule within the budget costs less than 10"
                    "\n") != std::string::npos);
  CHECK(run_command({"run", graph, "--budget", "50", "--solver", "greedy", "--backend", "host"})
            .out.find("cost at most 10.00% above the optimum") != std::string::npos);
}
