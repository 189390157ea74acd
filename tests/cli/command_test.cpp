#include "cairn/tests/cli/command.h"

#include <filesystem>

#include "cairn/core/formats/files.h"
#include "cairn/core/plan.h"
#include "cairn/core/profile.h"
#include "cairn/core/version.h"
#include "cairn/models/registry.h"
#include "cairn/solvers/registry.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/parts.h"

namespace cairn::tests::command_test {
namespace {

void check_keys(const Json& json, const Words& keys) {
  for (const auto& key : keys) {
    INFO("key: " << key);
    CHECK(json.contains(key));
  }
}

/// Arguments for small models of every family. Each of them runs in milliseconds.
const std::vector<Words> kTinyModels = {
    {"ffn", "--batch", "4", "--layers", "3", "--width", "16", "--inputs", "8", "--outputs", "4"},
    {"resnet18", "--batch", "1", "--image", "32", "--width", "4", "--classes", "5"},
    {"unet", "--batch", "1", "--image", "16", "--width", "4", "--depth", "2", "--classes", "3"},
    {"transformer", "--batch", "1", "--seq", "4", "--layers", "1", "--width", "8", "--heads", "2", "--ff", "16",
     "--vocab", "11"},
    {"gpt2", "--batch", "1", "--layers", "2", "--width", "8", "--heads", "2", "--seq", "4", "--vocab", "11"},
    {"mlp-mixer", "--batch", "2", "--image", "16", "--patch", "4", "--layers", "2", "--width", "8", "--token-mlp", "8",
     "--channel-mlp", "16", "--classes", "3"},
};

}  // namespace

TEST_CASE("the version and the help are on stdout, with exit code 0") {
  const auto version = run_command({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out == "cairn " + std::string(core::kVersion) + "\n");
  for (const Words& words : {Words{"--help"}, Words{"solve", "--help"}, Words{"run", "--help"}}) {
    const auto help = run_command(words);
    CHECK(help.code == 0);
    CHECK(help.err.empty());
    CHECK(contains(help.out, "Example"));
  }
}

TEST_CASE("models lists every model with its options") {
  const Json json = run_json({"models"});
  REQUIRE(json["models"].size() == models::registry().size());
  for (std::size_t i = 0; i < models::registry().size(); ++i) {
    const auto& model = models::registry()[i];
    CHECK(json["models"][i]["name"] == std::string(model.name));
    REQUIRE(json["models"][i]["options"].size() == model.options.size());
  }
  const auto table = run_command({"models"});
  CHECK(table.code == 0);
  CHECK(contains(table.out, "gpt2"));
  CHECK_FALSE(contains(table.out, "\033["));
}

TEST_CASE("model writes a graph that reads back") {
  const Folder folder;
  for (const auto& model : kTinyModels) {
    INFO(model.front());
    const Json json = run_json(Words{"model"} + model + Words{"-o", folder / "g.json", "--dot", folder / "g.dot"});
    const core::Graph graph = core::load_graph(folder / "g.json");
    check_fields(json, {{"fingerprint", graph.fingerprint()},
                        {"nodes", graph.node_count()},
                        {"edges", graph.edge_count()},
                        {"resident_bytes", graph.resident_bytes()}});
    CHECK(contains(read_text(folder / "g.dot"), "digraph"));
  }
}

TEST_CASE("model options reach the model") {
  const Json few = run_json({"model", "ffn", "--layers", "2", "--width", "8"});
  const Json more = run_json({"model", "ffn", "--layers", "5", "--width", "8"});
  CHECK(few["nodes"].get<int>() < more["nodes"].get<int>());
  const Words small = {"ffn", "--layers", "2", "--width", "8", "--inputs", "8", "--outputs", "8", "--batch", "2"};
  const Json adam = run_json(Words{"model"} + small + Words{"--optimizer", "adam"});
  const Json none = run_json(Words{"model"} + small + Words{"--optimizer", "none"});
  const Json arena = run_json(Words{"model"} + small + Words{"--optimizer", "none", "--weight-grads", "arena"});
  CHECK(adam["resident_bytes"].get<std::int64_t>() > none["resident_bytes"].get<std::int64_t>());
  CHECK(none["resident_bytes"].get<std::int64_t>() > arena["resident_bytes"].get<std::int64_t>());
}

TEST_CASE("a model in elementary operations is solved and run like any other") {
  const Words small = {"ffn", "--layers", "20", "--width", "8", "--inputs", "8", "--outputs", "8", "--batch", "2048"};
  const Words operations = small + Words{"--granularity", "op"};
  const Json layers = run_json(Words{"model"} + small + Words{"--granularity", "layer"});
  CHECK(layers == run_json(Words{"model"} + small));
  const Folder folder;
  const Json model = run_json(Words{"model"} + operations + Words{"--unit-cost", "-o", folder / "g.json"});
  CHECK(model["nodes"].get<int>() > layers["nodes"].get<int>());
  CHECK(model["baseline_cost"] == model["nodes"]);
  CHECK(model["fingerprint"] == core::load_graph(folder / "g.json").fingerprint());
  CHECK(run_json(Words{"info"} + operations)["nodes"] == model["nodes"]);
  CHECK(run_json({"info", folder / "g.json", "--unit-cost"})["baseline_cost"] == model["nodes"]);
  const Json solved = run_json(Words{"solve"} + operations + Words{"--unit-cost", "--solver", "tw", "--budget", "80%"});
  CHECK(solved["cost"] == solved["steps"]);
  for (const std::string solver : {"tw", "rotor"}) {
    const Json run =
        run_json(Words{"run"} + operations + Words{"--budget", "80%", "--solver", solver, "--backend", "host"});
    CHECK(run["identical"] == true);
    CHECK(run["scheduled"]["planned_bytes"].get<std::int64_t>() < run["baseline"]["planned_bytes"].get<std::int64_t>());
  }
}

TEST_CASE("info says what fits and by which means") {
  const auto [folder, graph] = Diamond{};
  const Json json = run_json({"info", graph});
  check_fields(json, {{"nodes", 4},
                      {"edges", 4},
                      {"baseline_peak_bytes", 60},
                      {"baseline_cost", 10},
                      {"lower_bound_peak_bytes", 50},
                      {"least_feasible_bytes", 50}});

  const Json as_it_is = run_json({"info", graph, "--budget", "60"});
  CHECK(as_it_is["means"] == "baseline");
  CHECK(contains(as_it_is["verdict"], "as it is"));
  CHECK(as_it_is["recomputed"] == 0);
  const Json recomputed = run_json({"info", graph, "--budget", "50"});
  check_fields(recomputed, {{"fits", true}, {"means", "recomputation"}});
  CHECK(contains(recomputed["verdict"], "recomputing 1"));
  check_fields(recomputed, {{"recomputed", 1},
                            {"within_budget", Json({{"planned_bytes", 50},
                                                    {"peak_bytes", 50},
                                                    {"cost", 11},
                                                    {"cost_increase_pct", 10.0},
                                                    {"recomputed", 1},
                                                    {"steps", 5}})}});
  CHECK(run_json({"info", graph, "--budget", "49"}, 3)["fits"] == false);
  CHECK(run_json({"info", graph, "-o", folder / "again.json"})["nodes"] == 4);
  CHECK(core::load_graph(folder / "again.json").fingerprint() == core::load_graph(graph).fingerprint());
  const auto table = run_command({"info", graph, "--budget", "80%"});
  CHECK(table.code == 3);
  CHECK(contains(table.out, "48 bytes"));
}

TEST_CASE("every solver's solve has the keys, and its files read back") {
  const Folder folder;
  for (const auto& model : kTinyModels) {
    const std::string source = folder / "g.json";
    run_json(Words{"model"} + model + Words{"-o", source});
    const core::Graph graph = core::load_graph(source);
    for (const auto& solver : solvers::registry()) {
      if (solver.graphs != "any" || !solver.why_missing().empty()) continue;
      INFO(model.front() << " by " << solver.name);
      const Json json = run_json({"solve", source, "--solver", std::string(solver.name), "--work-limit", "200000", "-o",
                                  folder / "s.json", "--plan", folder / "p.json"});
      check_keys(json, {"graph", "nodes", "edges", "solver", "status", "budget_bytes", "baseline_peak_bytes"});
      check_keys(json, {"baseline_cost", "peak_bytes", "cost", "cost_increase_pct", "lower_bound_peak_bytes"});
      check_keys(json, {"recomputed", "steps", "solve_seconds", "best_seconds", "planned_bytes", "valid"});
      check_keys(json, {"least_feasible_bytes", "resident_bytes", "timed_out"});
      check_fields(json, {{"solver", std::string(solver.name)}, {"valid", true}});
      CHECK(json["budget_bytes"].is_null());
      CHECK(json["peak_bytes"].get<std::int64_t>() <= json["planned_bytes"].get<std::int64_t>());
      CHECK(json["least_feasible_bytes"].get<std::int64_t>() <= json["planned_bytes"].get<std::int64_t>());
      CHECK(json["lower_bound_peak_bytes"].get<std::int64_t>() <= json["least_feasible_bytes"].get<std::int64_t>());

      const auto file = core::load_schedule(folder / "s.json", graph);
      const auto evaluation = core::evaluate(graph, file.schedule);
      CHECK(evaluation.peak == json["peak_bytes"].get<std::int64_t>());
      CHECK(evaluation.cost == json["cost"].get<std::int64_t>());
      CHECK(evaluation.recomputed == json["recomputed"].get<std::int64_t>());
      CHECK(file.schedule.length() == json["steps"].get<std::int64_t>());
      const auto plan = core::load_plan(folder / "p.json", graph);
      CHECK(core::check_plan(graph, file.schedule, plan).empty());
      CHECK(plan.bytes == json["planned_bytes"].get<std::int64_t>());
    }
  }
}

TEST_CASE("solve with a budget keeps it and says what it costs") {
  const auto [folder, graph] = Diamond{};
  const Json json = run_json({"solve", graph, "--budget", "50"});
  check_fields(json, {{"peak_bytes", 50}, {"recomputed", 1}, {"cost", 11}});
  CHECK(json["cost_increase_pct"].get<double>() == Approx(10));
  CHECK(json["budget_bytes"] == 50);
  CHECK(run_json({"solve", graph, "--budget", "100%"})["budget_bytes"] == 60);
}

TEST_CASE("the empty graph is solved and run by a schedule without steps") {
  const Folder folder;
  const std::string graph = folder.write("e.json", R"({"format":"cairn.graph","version":1,"name":"e","nodes":[]})");
  for (const auto& solver : solvers::registry()) {
    if (!solver.why_missing().empty()) continue;
    INFO(solver.name);
    const Json json = run_json({"solve", graph, "--budget", "1", "--solver", std::string(solver.name), "-o",
                                folder / "s.json", "--plan", folder / "p.json"});
    check_fields(json, {{"steps", 0}, {"planned_bytes", 0}, {"valid", true}});
  }
  for (const Words& how : {Words{"--budget", "1"}, Words{"--schedule", folder / "s.json"}}) {
    const Json json = run_json(Words{"run", graph} + how);
    CHECK(json["scheduled"]["steps"] == 0);
    CHECK(json["outputs_compared"] == 0);
    const auto table = run_command(Words{"run", graph} + how);
    CHECK(contains(table.out, "nothing to compare"));
  }
}

TEST_CASE("solve says where the plan does not fit although the peak does") {
  const auto [folder, graph] = Diamond{};
  const Json fits = run_json({"solve", graph, "--budget", "50"});
  CHECK(fits["plan_fits"] == true);
  // Three outputs are in memory at once. Each is rounded up to 256 bytes, so together they take 768 bytes.
  const Words words = {"solve", graph, "--budget", "512", "--alignment", "256"};
  check_error(words, 3, {" of the baseline peak)\n  sizes are rounded up to --alignment 256\n", "is 768"});
  const Json json = run_json(words + Words{"--peak-only"});
  check_fields(json, {{"planned_bytes", 768}, {"plan_fits", false}});
  CHECK(contains(run_command(words + Words{"--peak-only"}).out, "50.0% above the budget, which limits only the peak"));
}

TEST_CASE("the same seed and work limit give the same schedule") {
  const Folder folder;
  const Words words = Words{"solve"} + kTinyModels[3] +
                      Words{"--budget", "80%", "--seed", "7", "--work-limit", "100000", "--solver", "auto", "-o"};
  run_json(words + Words{folder / "1.json"});
  run_json(words + Words{folder / "2.json"});
  CHECK(read_text(folder / "1.json") == read_text(folder / "2.json"));
}

TEST_CASE("plan places the tensors of a schedule") {
  const Folder folder;
  const std::string path = folder.write("g.json", diamond_graph());
  run_json({"solve", path, "--budget", "50", "-o", folder / "s.json"});
  const Json json = run_json(
      {"plan", path, folder / "s.json", "--alignment", "16", "-o", folder / "p.json", "--csv", folder / "p.csv"});
  const core::Graph graph = core::load_graph(path);
  const auto plan = core::load_plan(folder / "p.json", graph);
  CHECK(core::check_plan(graph, core::load_schedule(folder / "s.json", graph).schedule, plan).empty());
  check_fields(json, {{"planned_bytes", plan.bytes}, {"alignment", 16}});
  CHECK(json["planned_bytes"].get<std::int64_t>() % 16 == 0);
  CHECK(core::load_minimalloc_csv(folder / "p.csv").size() == plan.buffers.size());
}

TEST_CASE("plan places the buffers of a MiniMalloc file") {
  const Folder folder;
  const std::string csv = folder.write("b.csv", "id,lower,upper,size\na,0,4,10\nb,2,6,5\nc,5,8,10\n");
  const Json json = run_json({"plan", "--buffers", csv, "--capacity", "15", "-o", folder / "out.csv"});
  check_fields(json, {{"planned_bytes", 15}, {"lower_bound_bytes", 15}, {"fits", true}});
  CHECK(contains(read_text(folder / "out.csv"), "offset"));

  const auto outcome = run_command({"plan", "--buffers", csv, "--capacity", "14", "-o", folder / "no.csv"});
  CHECK(outcome.code == 3);
  CHECK(contains(outcome.err, "15"));
  CHECK_FALSE(std::filesystem::exists(folder / "no.csv"));
}

TEST_CASE("run gives the same bits within the budget, for every tiny model") {
  const Folder folder;
  for (const auto& model : kTinyModels) {
    INFO(model.front());
    // The peak of such a small ResNet-18 is the memory that a single convolution needs. No schedule can lower it.
    const std::string budget = model.front() == "resnet18" ? "100%" : "80%";
    const Json json = run_json(Words{"run"} + model +
                               Words{"--budget", budget, "--alignment", "16", "--time-limit", "4s", "--trace",
                                     folder / "t.json", "-o", folder / "s.json", "--plan", folder / "p.json",
                                     "--poison", "--report", folder / "r.html"});
    check_keys(json, {"graph", "solver", "backend", "device", "budget_bytes", "resident_bytes", "identical",
                      "outputs_compared", "loss"});
    check_fields(json, {{"backend", "host"}, {"identical", true}});
    CHECK(json["outputs_compared"].get<int>() > 1);
    CHECK(json["loss"].get<double>() > 0);
    for (const auto& part : {json["baseline"], json["scheduled"]}) {
      check_keys(part, {"planned_bytes", "measured_peak_bytes", "seconds", "predicted_peak_bytes", "live_peak_bytes"});
      check_fields(part,
                   {{"measured_peak_bytes", part["planned_bytes"]}, {"live_peak_bytes", part["predicted_peak_bytes"]}});
    }
    const auto& scheduled = json["scheduled"];
    CHECK(scheduled.contains("cost_increase_pct"));
    CHECK(scheduled["planned_bytes"].get<std::int64_t>() <= json["budget_bytes"].get<std::int64_t>());
    CHECK(read_json(folder / "t.json").contains("traceEvents"));
    CHECK(contains(read_text(folder / "r.html"), "</html>"));

    run_json(Words{"model"} + model + Words{"-o", folder / "g.json"});
    const core::Graph graph = core::load_graph(folder / "g.json");
    const auto schedule = core::load_schedule(folder / "s.json", graph).schedule;
    CHECK(core::check_plan(graph, schedule, core::load_plan(folder / "p.json", graph)).empty());

    const Json again =
        run_json(Words{"run", folder / "g.json", "--schedule", folder / "s.json", "--sentinels", "--repeat", "2"});
    check_fields(again, {{"identical", true}, {"loss", json["loss"]}});
  }
}

TEST_CASE("run executes graphs without ops by the synthetic kernel") {
  const auto [folder, graph] = Diamond{};
  const Json json = run_json({"run", graph, "--budget", "50", "--alignment", "1"});
  check_fields(json, {{"identical", true}, {"outputs_compared", 1}});
  CHECK(json["loss"].is_null());
  check_fields(json["scheduled"], {{"planned_bytes", 50}, {"measured_peak_bytes", 50}, {"recomputed", 1}});
  CHECK(json["scheduled"]["cost_increase_pct"].get<double>() == Approx(10));
  check_fields(json, {{"kernels", "synthetic"}, {"synthetic_nodes", 4}});
  CHECK(json["note"].get<std::string>().starts_with(
      "synthetic kernels: memory is real, arithmetic is not"));  // a note about a busy machine may follow
  CHECK(json["digests_compared"] == 1);
  const auto table = run_command({"run", graph, "--budget", "50", "--alignment", "1", "--report", folder / "r.html"});
  check_says(table.out, {"\nsynthetic kernels: memory is real, arithmetic is not\n",
                         "1 kept digests of synthetic kernels (10 B) bit by bit: identical", " cost units"});
  CHECK_FALSE(contains(table.out, "predicted time"));
  CHECK(contains(read_text(folder / "r.html"), "synthetic kernels: memory is real, arithmetic is not"));
  const Json real = run_json(Words{"run"} + kTinyModels.front() + Words{"--budget", "100%", "--repeat", "2"});
  check_fields(real, {{"kernels", "real"}, {"synthetic_nodes", 0}, {"digests_compared", 0}});
}

TEST_CASE("run times baseline and schedule by turns, and says how often and how far apart") {
  const Json json = run_json(Words{"run"} + kTinyModels.front() + Words{"--budget", "100%", "--repeat", "4"});
  check_fields(json["timing"], {{"executions", 4}, {"warm_ups", 1}, {"interleaved", true}});
  for (const auto& part : {json["baseline"], json["scheduled"]}) {
    CHECK(part["executions"] == 4);
    CHECK(part["seconds_min"].get<double>() <= part["seconds"].get<double>());
    CHECK(part["seconds"].get<double>() <= part["seconds_max"].get<double>());
  }
  const Json several = run_json(Words{"run"} + kTinyModels.front() + Words{"--budget", "100%"});
  CHECK(several["timing"]["executions"].get<int>() >= 3);
  const std::string table =
      run_command(Words{"run"} + kTinyModels.front() + Words{"--budget", "100%", "--repeat", "4"}).out;
  CHECK(contains(table, "time: median of 4 executions each, alternating, after one to warm up\n"));
}

TEST_CASE("commands that use threads take --threads, and refuse what is no number of them") {
  const auto [folder, graph] = Diamond{};
  const std::vector<Words> commands = {{"info", graph},
                                       {"solve", graph, "--budget", "100%"},
                                       {"run", graph, "--budget", "100%"},
                                       {"pareto", graph},
                                       {"measure", graph},
                                       {"simulate", graph, "--random", "100"},
                                       {"bench", "evaluate"}};
  for (const Words& command : commands) {
    INFO(command.front());
    CHECK(run_command(command + Words{"--threads", "1", "--json"}).code == 0);
    for (const char* wrong : {"0", "-1", "two", "5000"}) {
      check_error(command + Words{"--threads", wrong}, 2, {"--threads"});
    }
  }
  CHECK(run_json({"run", graph, "--budget", "100%", "--threads", "3"})["threads"] == 3);
}

TEST_CASE("run compares what nobody reads and nobody keeps") {
  const Folder folder;
  const std::string graph = folder.write("g.json", replaced(diamond_graph(), R"(,"keep":true)", ""));
  const Json json = run_json({"run", graph, "--budget", "50", "--alignment", "1"});
  check_fields(json, {{"identical", true}, {"outputs_compared", 1}, {"bytes_compared", 0}});
  CHECK(json["scheduled"]["recomputed"] == 1);
  const auto table = run_command({"run", graph, "--budget", "50", "--alignment", "1"});
  CHECK(contains(table.out, "compared 1 digests of outputs that nobody reads or keeps: identical"));
}

TEST_CASE("guards are beside the budget") {
  const auto [folder, graph] = Diamond{};
  const Json json = run_json({"run", graph, "--budget", "50", "--alignment", "1", "--sentinels"});
  check_fields(json, {{"identical", true}, {"guard_bytes", 256}});
  CHECK(json["scheduled"]["predicted_peak_bytes"] == 50);
  CHECK(json["scheduled"]["planned_bytes"].get<std::int64_t>() > 256);
  CHECK(contains(run_command({"run", "--help"}).out, "guards enlarge the arena"));
}

TEST_CASE("a plan at its bound is 0.00% above it, and a schedule may name no solver") {
  const auto [folder, graph] = Diamond{};
  run_json({"solve", graph, "--solver", "none", "-o", folder / "s.json"});
  CHECK(contains(run_command({"plan", graph, folder / "s.json"}).out, ", 0.00% below"));

  Json file = read_json(folder / "s.json");
  file.erase("solver");
  const std::string unnamed = folder.write("unnamed.json", file.dump());
  const auto outcome = run_command({"run", graph, "--schedule", unnamed, "--budget", "1MiB"});
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.out, "solver unknown;"));
}

TEST_CASE("a given schedule that does not fit into the budget is refused") {
  const auto [folder, graph] = Diamond{};
  run_json({"solve", graph, "--solver", "none", "-o", folder / "s.json"});
  const auto outcome =
      run_command({"run", graph, "--schedule", folder / "s.json", "--budget", "55", "--alignment", "1"});
  CHECK(outcome.code == 4);
  CHECK(contains(outcome.err, "60"));
}

TEST_CASE("bench names its units") {
  const Json json = run_json({"bench", "evaluate"});
  REQUIRE(json["benchmarks"].size() == 1);
  CHECK(json["benchmarks"][0]["unit"] == "ms");
  CHECK(json["benchmarks"][0]["value"].get<double>() > 0);
  CHECK(json["nodes"] == 20000);
}

TEST_CASE("quiet prints nothing") {
  const Folder folder;
  const auto outcome = run_command({"solve", folder.write("g.json", diamond_graph()), "--quiet"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out + outcome.err == "");
}

}  // namespace cairn::tests::command_test
