// Tests what info, solve and run print if a budget is too tight: the lower bound with its reason, and the least budget
// known to suffice, with the solver that meets this budget.
#include "cairn/core/formats/files.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/registry.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"
#include "cairn/tests/solvers/no_engine.h"

namespace cairn::tests::least_budget_test {
namespace {

/// Writes the model kFfn to a file and returns the file's path. Solver moccasin considers only schedules that keep the
/// input order in every stage and run a node at most twice. For this model, the least peak of these schedules is 16,384
/// bytes, which is above the least peak of all schedules.
std::string write_ffn(const Folder& folder) {
  run_json(Words{"model"} + kFfn + Words{"-o", folder / "ffn.json"});
  return folder / "ffn.json";
}

void check_reason(const Json& json) {
  const Json& reason = json["lower_bound_reason"];
  std::int64_t sum = 0;
  for (const Json& part : reason["holds"]) sum += part["bytes"].get<std::int64_t>();
  CHECK(sum == reason["bytes"].get<std::int64_t>());
  CHECK(sum <= json["lower_bound_peak_bytes"].get<std::int64_t>());
  CHECK_FALSE(reason["text"].get<std::string>().empty());
}

}  // namespace

TEST_CASE("the reason of the lower bound adds up to it if a node works in place") {
  const Folder folder;
  const std::string graph = folder.write("g.json", R"({"format":"cairn.graph","version":2,"name":"ip","nodes":[
    {"name":"a","size":10,"cost":10,"inputs":[]},
    {"name":"b","cost":12,"inputs":[0],"scratch":3,"outputs":[{"size":7,"inplace":0},{"size":4}]}]})");
  const std::string table = run_command({"info", graph}).out;
  INFO(table);
  check_says(table, {"\nlower bound         17 bytes\n",
                     "'b' needs its input 'a' (10 B), its 2 outputs (11 B) and scratch (3 B) in memory together, minus "
                     "up to 7 bytes that in-place nodes save\n"});
  // The bound is computed from sizes that are rounded up to the alignment. The reason states the rounded sizes, too.
  const std::string aligned = run_command({"info", graph, "--alignment", "16"}).out;
  INFO(aligned);
  check_says(aligned, {"\nlower bound         48 bytes\n",
                       "'a' (16 B), its 2 outputs (32 B) and scratch (16 B) in memory together, minus up to 16 bytes"});
}

TEST_CASE("info gives the reason of the lower bound, and who meets the least budget") {
  const auto [folder, graph] = Diamond{};
  const Json json = run_json({"info", graph});
  const Json holds = {{{"name", "c"}, {"bytes", 20}, {"kind", "input"}},
                      {{"name", "a"}, {"bytes", 20}, {"kind", "input"}},
                      {{"name", "d"}, {"bytes", 10}, {"kind", "output"}}};
  const std::string text = "'d' needs its inputs 'c' (20 B), 'a' (20 B) and its output (10 B) in memory together";
  check_fields(json, {{"lower_bound_reason", Json({{"node", "d"}, {"bytes", 50}, {"holds", holds}, {"text", text}})},
                      {"least_feasible_bytes", 50},
                      {"least_feasible_solver", "auto"}});
  CHECK(json["least_budget"]["proved"] == true);
  CHECK(run_json({"info", graph, "--solver", "none"})["least_feasible_solver"] == "none");

  const std::string table = run_command({"info", graph}).out;
  check_says(table, {"\nbecause             " + text + "\n",
                     "83.3% of the baseline, with --solver auto, cost +10.00% or less; proved least\n"});

  // Solver order never recomputes, so it needs 60 bytes. Schedules that recompute need less, so the lower bound is
  // still 50.
  const Json orders = run_json({"info", graph, "--solver", "order"});
  check_fields(orders,
               {{"lower_bound_peak_bytes", 50}, {"least_feasible_bytes", 60}, {"least_feasible_solver", "none"}});
}

TEST_CASE("exit code 3 gives the reason and the witness") {
  const auto [folder, graph] = Diamond{};
  const std::string line =
      "fits into 49 bytes (81.7% of the baseline peak)\n"
      "  the lower bound is 50 bytes (83.3%): 'd' needs its inputs 'c' (20 B), 'a' (20 B) and its output (10 B) in "
      "memory "
      "together\n"
      "  the least budget known to suffice is that bound (--budget 50), with --solver auto\n";
  check_error({"solve", graph, "--budget", "49"}, 3, {"no schedule of 'tiny' " + line});
  check_error({"run", graph, "--budget", "49", "--alignment", "1", "--backend", "host"}, 3, {line});
  for (const Words& words : {Words{"solve", graph, "--budget", "49"},
                             Words{"run", graph, "--budget", "49", "--alignment", "1", "--backend", "host"}}) {
    const Json json = run_json(words, 3);
    check_reason(json);
    CHECK(json["lower_bound_reason"]["node"] == "d");
    check_fields(json, {{"status", "infeasible"},
                        {"stopped", "proved"},
                        {"least_feasible_bytes", 50},
                        {"least_feasible_solver", "auto"}});
  }
}

TEST_CASE("an answer of every solver that nothing fits is a proof, and says so") {
  const auto [folder, graph] = Diamond{};
  for (const auto& solver : solvers::registry()) {
    if (!solver.why_missing().empty()) continue;
    INFO(solver.name);
    const auto outcome =
        run_command({"solve", graph, "--budget", "49", "--solver", std::string(solver.name), "--json"});
    if (outcome.code == 2) continue;  // the solver does not accept this graph
    REQUIRE(outcome.code == 3);
    check_fields(outcome.json(), {{"status", "infeasible"}, {"stopped", "proved"}});
  }
}

TEST_CASE("where nothing was found it says why the search ended, and what would help") {
  const auto [folder, graph] = Diamond{};
  for (const std::string command : {"solve", "run"}) {
    INFO(command);
    // More time does not help a solver that has finished, so the message must not suggest it.
    const auto ended = run_command({command, graph, "--budget", "55", "--solver", "none"});
    check_error(ended, 4,
                {"found no schedule", "; not proved impossible\n",
                 "  the lower bound is 50 bytes (83.3%), set by 'd'\n", "the search ended because the solver finished",
                 "the least budget known to suffice is that bound (--budget 50), with --solver auto",
                 "\n  raise --budget, or try another --solver"});
    CHECK_FALSE(contains(ended.err, "--time-limit"));
  }
  const std::string layered = folder / "layered.json";
  run_json({"generate", "random-layered", "--nodes", "200", "-o", layered});
  const auto limited = run_command({"solve", layered, "--budget", "62%", "--work-limit", "1"});
  if (limited.code == 4) check_error(limited, 4, {"the search ended by the limit", "or --time-limit"});
  // The least budget that the message names is at most the peak of the schedule that this search has found.
  const Json peak = run_json({"solve", layered, "--budget", "62%", "--work-limit", "300", "--peak-only"}, 4);
  CHECK(peak["least_feasible_bytes"].get<std::int64_t>() <= peak["peak_bytes"].get<std::int64_t>());
}

TEST_CASE("info bounds the cost within a budget") {
  const auto [folder, graph] = Diamond{};
  const Json fits = run_json({"info", graph, "--budget", "50"});
  check_fields(fits, {{"cost_within_budget", 11},
                      {"lower_bound_cost", 11},
                      {"lower_bound_cost_scope", "any schedule"},
                      {"gap_pct", 0}});
  CHECK(contains(run_command({"info", graph, "--budget", "50"}).out,
                 "11 cost units (+10.00%): no schedule within the budget costs less\n"));
  const Json free = run_json({"info", graph, "--budget", "60"});
  check_fields(free, {{"cost_within_budget", 10}, {"lower_bound_cost", 10}});
  // info computes the lower bound on the cost whatever the solver is, even with solver none, which proves nothing.
  const Json greedy = run_json({"info", graph, "--budget", "50", "--solver", "greedy"});
  check_fields(greedy, {{"lower_bound_cost", 11}, {"gap_pct", 0}});
  const Json none = run_json({"info", graph, "--budget", "50", "--solver", "none"}, 4);
  CHECK(none["cost_within_budget"].is_null());
  CHECK(none["lower_bound_cost"] == 11);
  CHECK(none["gap_pct"].is_null());
  CHECK(run_json({"info", graph, "--budget", "49"}, 3)["lower_bound_cost"].is_null());
  CHECK_FALSE(run_json({"info", graph}).contains("lower_bound_cost"));

  // The lower bound on the cost from info must be at most the cost of the schedule from solve, and the bound from solve
  // must be at most the cost of the schedule from info.
  const std::string ffn = write_ffn(folder);
  for (const std::string budget : {"95%", "80%", "65%"}) {
    INFO(budget);
    const Json info = run_json({"info", ffn, "--budget", budget, "--work-limit", "200000"});
    const Json solved = run_json({"solve", ffn, "--budget", budget, "--work-limit", "200000"});
    CHECK(info["lower_bound_cost"] <= solved["cost"]);
    CHECK(info["lower_bound_cost"] >= info["baseline_cost"]);
    CHECK(solved["lower_bound_cost"] <= info["cost_within_budget"]);
  }
}

TEST_CASE("each of the engines' solvers says why no schedule meets a budget") {
  if (no_engine()) return;
  const Folder folder;
  const std::string ffn = write_ffn(folder);
  for (const std::string solver : {"moccasin", "checkmate", "checkmate-lp", "rotor", "hiremate"}) {
    INFO(solver);
    // A single node needs more than this budget. So no schedule fits, not even a schedule that this solver never
    // considers.
    const Words words = {"solve", ffn, "--solver", solver, "--budget", "12287", "--time-limit", "2s"};
    check_error(words, 3,
                {"no schedule of 'ffn' fits into 12.00 KiB (12287 bytes, ", " of the baseline peak)\n",
                 "  the lower bound is 12.00 KiB (12288 bytes, ", "%): 'layer",
                 "in memory together\n  the least budget known to suffice is ", ", with --solver "});
    check_reason(run_json(words, 3));
  }
}

TEST_CASE("what a solver proves of its own schedules alone is told as that") {
  if (no_engine()) return;
  const Folder folder;
  const std::string ffn = write_ffn(folder);
  const Words words = {"solve", ffn, "--solver", "moccasin", "--budget", "15000"};
  check_error(words, 3,
              {"no schedule of 'ffn' (input order kept in every stage, at most 2 occurrences of a node) fits into",
               "the lower bound is 16.00 KiB (79.0%): the search proved it; any schedule needs 12.00 KiB, as 'layer",
               "other schedules may fit, which solver 'moccasin' leaves out: try --solver auto"});
  const Json json = run_json(words, 3);
  check_reason(json);
  CHECK(json["lower_bound_scope"] == "input order kept in every stage, at most 2 occurrences of a node");
  CHECK(json["least_feasible_bytes"].get<std::int64_t>() <= 15000);  // another solver than moccasin meets this budget
  const Json info = run_json({"info", ffn, "--solver", "moccasin", "--budget", "15000"}, 3);
  check_fields(info, {{"fits", false},
                      {"fits_scope", "input order kept in every stage, at most 2 occurrences of a node"},
                      {"fits_with_solver", "auto"}});
  CHECK(contains(info["verdict"], "; fits with --solver auto"));
}

TEST_CASE("a scope that was asked for is named where it leaves out schedules") {
  const auto [folder, graph] = Diamond{};
  check_error({"solve", graph, "--budget", "55", "--order", "input", "--max-occurrences", "1"}, 3,
              {"(input order kept, without recomputation) fits", "which --order or --max-occurrences leaves out",
               "is 60 bytes"});
  check_error({"solve", graph, "--solver", "order", "--budget", "55"}, 3,
              {"without recomputation", "suffice is 50 bytes (83.3%), with --solver auto", "try --solver auto"});
}

TEST_CASE("what info says of fits is what its exit code says, and of which schedules") {
  const auto [folder, graph] = Diamond{};
  const auto check = [&](const Words& options, int code, const Json& fits, const std::string& scope) {
    CAPTURE(options);
    const Json json = run_json(Words{"info", graph} + options, code);
    check_fields(json, {{"fits", fits}, {"fits_scope", scope}});
  };
  check({"--budget", "55"}, 0, true, "any schedule");
  check({"--budget", "49"}, 3, false, "any schedule");
  check({"--budget", "55", "--max-occurrences", "1"}, 3, false, "without recomputation");
  check({"--budget", "55", "--order", "fixed", "--max-occurrences", "1"}, 3, false,
        "input order kept, without recomputation");
  check({"--budget", "55", "--solver", "order"}, 3, false, "without recomputation");
  check({"--budget", "55", "--solver", "none"}, 4, nullptr, "any schedule");
  CHECK(run_json({"info", graph, "--budget", "55", "--solver", "order"}, 3)["fits_with_solver"] == "auto");
  CHECK(run_json({"info", graph, "--budget", "55", "--max-occurrences", "1"}, 3)["fits_with_solver"].is_null());
}

TEST_CASE("percentages of budgets and plans are of the baseline's peak with sizes rounded up") {
  const auto [folder, graph] = Diamond{};
  const Words aligned = {"--alignment", "256"};  // the peak is 60 bytes without rounding, and 3 * 256 with it
  const Json info = run_json(Words{"info", graph, "--budget", "100%"} + aligned);
  check_fields(info, {{"baseline_peak_bytes", 60}, {"hundred_percent_bytes", 768}, {"budget_bytes", 768}});
  const std::string table = run_command(Words{"info", graph} + aligned).out;
  check_says(table, {"60 bytes; 100% is 768 bytes, with sizes rounded up to --alignment 256\n",
                     "768 bytes, 100.0% of the baseline, with --solver"});
  const Json curve = run_json(Words{"pareto", graph, "--budgets", "150%,100%"} + aligned);
  CHECK(curve["points"][0]["budget_pct"] == 150);
  CHECK(curve["points"][1]["budget_pct"] == 100);
  CHECK(contains(run_command(Words{"pareto", graph, "--budgets", "100%"} + aligned).out, "100.0%"));
  CHECK(contains(run_command(Words{"solve", graph} + aligned).out, "768 B (100.0%) at +0.00%"));
  check_error(Words{"solve", graph, "--budget", "50%"} + aligned, 3,
              {"into 384 bytes (50.0% of the baseline peak)", "the lower bound is 768 bytes (100.0%)"});
  // With --peak-only, sizes are not rounded. By default, without --alignment, sizes of this graph are not rounded
  // either, because none of its nodes has an op.
  CHECK(run_json(Words{"pareto", graph, "--budgets", "100%", "--peak-only"} + aligned)["points"][0]["budget_bytes"] ==
        60);
  CHECK_FALSE(contains(run_command({"info", graph}).out, "100% is"));
}

TEST_CASE("the least budget known is met by the solver that is named") {
  const Folder folder;
  std::vector<std::string> graphs = {folder.write("diamond.json", diamond_graph()), write_ffn(folder)};
  const auto add = [&](Words words, const std::string& name) {
    words.insert(words.end(), {"-o", folder / name});
    run_json(words);
    graphs.push_back(words.back());
  };
  add({"generate", "random", "--nodes", "24", "--edges", "50", "--seed", "3"}, "random.json");
  add({"generate", "random", "--nodes", "90", "--edges", "200", "--in-place", "0.3", "--keep", "0.1"}, "large.json");
  add({"generate", "series-parallel", "--nodes", "60", "--seed", "1"}, "sp.json");
  add({"model", "gpt2", "--layers", "2", "--width", "16", "--heads", "2", "--seq", "8", "--vocab", "16", "--batch",
       "2"},
      "gpt2.json");
  add({"model", "unet", "--image", "16", "--width", "2", "--depth", "2", "--batch", "1"}, "unet.json");
  std::int64_t recomputed = 0;
  for (const std::string& graph : graphs) {
    INFO(graph);
    const Json info = run_json({"info", graph, "--work-limit", "50000"});
    check_reason(info);
    const std::string budget = std::to_string(info["least_feasible_bytes"].get<std::int64_t>());
    for (const std::string& solver : {info["least_feasible_solver"].get<std::string>(), std::string("auto")}) {
      INFO(solver << " within " << budget);
      const Json json = run_json(
          {"solve", graph, "--budget", budget, "--solver", solver, "--work-limit", "1600000", "-o", folder / "s.json"});
      const core::Graph loaded = core::load_graph(graph);
      const auto schedule = core::load_schedule(folder / "s.json", loaded).schedule;
      const core::Evaluation found = core::evaluate(loaded, schedule);
      CHECK(found.peak <= std::stoll(budget));
      recomputed += found.recomputed > 0 ? 1 : 0;
    }
  }
  CHECK(recomputed >= 6);
}

TEST_CASE("the witness of the least budget is written, and every command keeps that promise") {
  const Folder folder;
  const std::string graph = folder / "unet.json";
  run_json({"model", "unet", "--image", "16", "--width", "2", "--depth", "2", "--batch", "1", "-o", graph});
  const std::string schedule = folder / "w.json", plan = folder / "p.json";
  const Words limit = {"--work-limit", "2000000"};
  const Words info = Words{"info", graph, "--witness", schedule, "--witness-plan", plan} + limit;
  const Json json = run_json(info);
  const std::int64_t bytes = json["least_feasible_bytes"];
  CHECK(json["least_budget"]["planned_bytes"] == bytes);
  CHECK(run_json(info)["least_feasible_bytes"] == bytes);

  const core::Graph loaded = core::load_graph(graph);
  const core::Schedule witness = core::load_schedule(schedule, loaded).schedule;
  CHECK(core::evaluate(loaded, witness).cost == json["least_budget"]["cost"]);
  const core::Plan planned = core::load_plan(plan, loaded);
  CHECK(planned.bytes == bytes);
  CHECK(core::check_plan(loaded, witness, planned).empty());

  const Words budget = {"--budget", std::to_string(bytes)};
  // The schedule file also contains the plan, so a command that reads the file does not search for a plan again.
  const Json started = run_json(Words{"solve", graph, "--start", schedule, "--work-limit", "1"} + budget);
  CHECK(started["planned_bytes"] == bytes);
  CHECK(run_json({"plan", graph, schedule, "--alignment", "256", "--time-limit", "0"})["planned_bytes"] == bytes);
  const Json executed = run_json(Words{"run", graph, "--schedule", schedule, "--backend", "host"} + budget);
  CHECK(executed["scheduled"]["planned_bytes"] == bytes);

  const Json solved = run_json(Words{"solve", graph} + budget + limit);
  CHECK(solved["planned_bytes"] <= bytes);
  const Json run = run_json(Words{"run", graph, "--backend", "host"} + budget + limit);
  CHECK(run["scheduled"]["measured_peak_bytes"] <= bytes);
  const Json fits = run_json(Words{"info", graph} + budget + limit);
  CHECK(fits["fits"] == true);
  CHECK(run_json(Words{"solve", graph, "--budget", "min"} + limit)["planned_bytes"] <= bytes);
  check_error({"info", graph, "--witness", graph}, 2, {"--witness", "GRAPH"});
}

TEST_CASE("a device holds what is resident, libraries, the context and the arena together") {
  const Words& model = kFfn;
  const Words limit = {"--work-limit", "1000000"};
  const Json json = run_json(Words{"info"} + model + Words{"--device-memory", "1GiB"} + limit);
  const Json& device = json["device"];
  CHECK(json["fits"] == true);
  check_fields(device,
               {{"memory_bytes", 1 << 30}, {"resident_bytes", json["resident_bytes"]}, {"context_bytes", 512 << 20}});
  CHECK(json["budget_bytes"] == device["arena_bytes"]);
  CHECK(device["arena_bytes"].get<std::int64_t>() == (std::int64_t{1} << 30) - (512 << 20) -
                                                         device["workspace_bytes"].get<std::int64_t>() -
                                                         device["resident_bytes"].get<std::int64_t>());
  std::int64_t parts = 0;
  for (const auto& [name, bytes] : json["resident"].items()) parts += bytes.get<std::int64_t>();
  CHECK(parts == json["resident_bytes"]);

  // If the device is too small, info says how much memory would suffice, and which batch size would fit.
  const std::int64_t least = json["least_feasible_bytes"];
  const std::int64_t beside = (std::int64_t{1} << 30) - device["arena_bytes"].get<std::int64_t>();
  const auto with = [&](std::int64_t arena) {
    return Words{"info"} + model + Words{"--device-memory", std::to_string(beside + arena)} + limit;
  };
  CHECK(run_json(with(least))["fits"] == true);
  const auto outcome = run_command(with(least / 2));
  CHECK((outcome.code == 3 || outcome.code == 4));
  check_says(outcome.out, {"\nleast device ", "\nlargest batch "});
  const Json small = run_json(with(least / 2), outcome.code);
  CHECK(small["device"]["least_memory_bytes"] == beside + least);
  const std::int64_t batch = small["device"]["largest_batch"]["batch"];
  CHECK(batch < 64);
  CHECK(batch >= 1);

  check_error(Words{"solve"} + model + Words{"--device-memory", "1MiB"}, 3,
              {"'ffn' does not fit into --device-memory 1.00 MiB", "context 512.00 MiB", "smaller --batch"});
  check_error(Words{"info"} + model + Words{"--device-memory", "1MiB"} + limit, 3,
              {"'ffn' does not fit into --device-memory 1.00 MiB", "without an arena", "largest batch: none"});
  for (const std::string command : {"info", "solve", "run"})
    check_error(Words{command} + model + Words{"--context-memory", "1GiB", "-b", "100%"}, 2,
                {"--context-memory is a part of --device-memory; give that too"});
  check_error(Words{"info"} + model + Words{"-b", "min"}, 2, {"--budget min is for solve and run"});
  check_error(Words{"solve"} + model + Words{"--device-memory", "1GiB", "-b", "50%"}, 2,
              {"--budget", "--device-memory", "drop one"});
  check_error(Words{"solve"} + model + Words{"--device-memory", "much"}, 2, {"--device-memory", "'much'"});
}

TEST_CASE("the option --batch auto takes the largest batch that fits") {
  const Words model = {"ffn", "--layers", "4", "--width", "16", "--inputs", "16", "--outputs", "8"};
  const Words limit = {"--work-limit", "2000000"};
  const auto outcome = run_command(Words{"solve"} + model + Words{"--batch", "auto", "-b", "40000", "--json"} + limit);
  REQUIRE(outcome.code == 0);
  CHECK(contains(outcome.err, "--batch auto: "));
  CHECK(outcome.json()["planned_bytes"] <= 40000);
  const auto run = run_command(Words{"run", "--backend", "host"} + model +
                               Words{"--batch", "auto", "-b", "40000", "--json"} + limit);
  REQUIRE(run.code == 0);
  CHECK(run.json()["scheduled"]["measured_peak_bytes"] <= 40000);
  check_error(Words{"info"} + model + Words{"--batch", "auto"}, 2, {"--batch auto", "--device-memory"});
  check_error(Words{"info"} + model + Words{"--batch", "auto", "-b", "50%"}, 2, {"--batch auto"});
  for (const Words& other : {Words{"simulate", "--random", "3"}, Words{"model"}, Words{"pareto"}})
    check_error(other + model + Words{"--batch", "auto"}, 2, {"--batch auto is for info, solve and run"});
  check_error(Words{"info"} + model + Words{"--batch", "many"}, 2, {"--batch many is not a whole number"});
  check_error(Words{"info"} + model + Words{"--batch", "auto", "-b", "10"}, 3, {"no batch of 'ffn' fits"});
}

namespace {

bool is_empty(const std::string& folder) {
  return !std::filesystem::exists(folder) || std::filesystem::is_empty(folder);
}

}  // namespace

TEST_CASE("a budget that one command has named is met by the next one, whatever its time limit is") {
  const Folder folder;
  const std::string graph = folder / "unet.json", cached = folder / "cache/schedules", start = folder / "s.json";
  run_json({"model", "unet", "--image", "32", "--width", "4", "--batch", "2", "-o", graph});
  run_json({"solve", graph, "--solver", "none", "-o", start});
  const Environment cache("CAIRN_CACHE", folder / "cache");

  // Searches with these options must not store their schedules in the cache.
  for (const Words& other : {Words{"--work-limit", "100000"}, Words{"--peak-only", "-t", "200ms"},
                             Words{"--solver", "greedy", "-t", "200ms"}}) {
    INFO(other.front());
    run_command(Words{"solve", graph, "--budget", "70%"} + other);
    CHECK(is_empty(cached));
  }

  const Json named = run_json({"info", graph, "-t", "2s"});
  const std::int64_t bytes = named["least_feasible_bytes"];
  CHECK(!is_empty(cached));
  const Words at_once = {"-t", "50ms"}, budget = {"--budget", std::to_string(bytes)};
  CHECK(run_json(Words{"solve", graph} + budget + at_once)["planned_bytes"] <= bytes);
  CHECK(run_json(Words{"info", graph} + budget + at_once)["fits"] == true);
  CHECK(run_json(Words{"info", graph} + at_once)["least_feasible_bytes"] <= bytes);
  CHECK(run_json(Words{"solve", graph, "--budget", "min"} + at_once)["planned_bytes"] <= bytes);
  CHECK(run_json(Words{"solve", graph, "--budget", "min", "--start", start} + at_once)["planned_bytes"] <= bytes);
  const Json run = run_json(Words{"run", graph, "--backend", "host"} + budget + Words{"-t", "1s"});
  CHECK(run["scheduled"]["measured_peak_bytes"] <= bytes);
  // The cache holds a schedule that fits into `bytes`. So an error message must not name a higher least budget.
  const Outcome below = run_command(Words{"solve", graph, "--budget", std::to_string(bytes / 2), "--json"} + at_once);
  REQUIRE(below.code != 0);
  CHECK(below.json()["least_feasible_bytes"] <= bytes);

  // A run that succeeds stores its schedule, too.
  const Environment other("CAIRN_CACHE", folder / "other");
  run_json({"run", graph, "--backend", "host", "--budget", "60%", "-t", "1s"});
  CHECK(!is_empty(folder / "other/schedules"));
}

TEST_CASE("a budget that a command has named for a link is met by the next one with this link") {
  const Folder folder;
  const std::string graph = folder / "unet.json";
  run_json({"model", "unet", "--image", "32", "--width", "4", "--batch", "2", "-o", graph});
  const Environment cache("CAIRN_CACHE", folder / "cache");
  const Words link = {"--link", "pcie4"}, at_once = {"-t", "50ms"};
  const std::int64_t bytes = run_json(Words{"info", graph, "-t", "2s"} + link)["least_feasible_bytes"];
  const Words budget = {"--budget", std::to_string(bytes)};
  CHECK(run_json(Words{"solve", graph} + link + budget + at_once)["planned_bytes"] <= bytes);
  CHECK(run_json(Words{"info", graph} + link + at_once)["least_feasible_bytes"] <= bytes);
  // What was found without a link holds with every link, but not the other way round.
  const Environment other("CAIRN_CACHE", folder / "other");
  const std::int64_t without = run_json({"info", graph, "-t", "1s"})["least_feasible_bytes"];
  CHECK(run_json(Words{"info", graph} + link + at_once)["least_feasible_bytes"] <= without);
}

TEST_CASE("info with a budget names a schedule that is as cheap as that of solve, and not the lowest one") {
  const Folder folder;
  const std::string graph = folder / "resnet.json";
  run_json({"model", "resnet50", "--image", "64", "--batch", "2", "-o", graph});
  const Words words = {graph, "--budget", "70%", "--work-limit", "2000000"};
  const Json info = run_json(Words{"info"} + words), solve = run_json(Words{"solve"} + words);
  const double baseline = solve["baseline_cost"], cheap = solve["cost"];
  const double more = info["cost_within_budget"].get<double>() - baseline;
  CHECK(more <= 1.5 * (cheap - baseline) + 0.01 * baseline);
}

}  // namespace cairn::tests::least_budget_test
