#include "cairn/core/formats/files.h"
#include "cairn/core/profile.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace cairn::tests::interrupt_test {
namespace {

/// Returns a graph of 200 layers with 100 nodes each. Each node reads two nodes of the layer before. The graph is so
/// large that no solver finishes before the test interrupts it. All sizes are multiples of `unit` bytes.
core::Graph large_graph(std::int64_t unit = 1) {
  constexpr core::NodeId kNodes = 20000, kLayer = 100;
  core::GraphBuilder builder("large");
  for (core::NodeId v = 0; v < kNodes; ++v) {
    core::Node node{.name = std::to_string(v), .size = unit * (1 + v % 37), .cost = 1 + v % 11};
    if (v >= kLayer) {
      const core::NodeId below = v / kLayer * kLayer - kLayer;
      node.inputs = {below + v * 7 % kLayer, below + (v * 7 + 1 + v % 13) % kLayer};
    }
    builder.add(std::move(node));
  }
  return builder.build();
}

}  // namespace

TEST_CASE("Ctrl-C in a long solve keeps the best schedule and exits with 130") {
  const Folder folder;
  const core::Graph graph = large_graph();
  const std::string path = folder.write("large.json", core::graph_to_json(graph));
  const std::string output = folder / "s.json";

  const Outcome outcome =
      interrupted({"solve", path, "--solver", "auto", "--time-limit", "10m", "-o", output, "--json"});
  CHECK(contains(outcome.err, "interrupted"));
  const auto json = outcome.json();
  check_fields(json, {{"interrupted", true}, {"valid", true}});
  const auto file = core::load_schedule(output, graph);
  const auto evaluation = core::evaluate(graph, file.schedule);
  CHECK(evaluation.valid());
  CHECK(json["peak_bytes"] == evaluation.peak);
}

TEST_CASE("an interrupted search for the least budget still says that no schedule fits") {
  const Folder folder;
  const std::string path = folder.write("large.json", core::graph_to_json(large_graph())), output = folder / "s.json";
  // The largest node alone needs more than the budget of 20 bytes, so no schedule fits.
  const Outcome outcome = interrupted({"solve", path, "-b", "20", "--time-limit", "10m", "-o", output, "--json"});
  const auto json = outcome.json();
  CHECK(json["status"] == "infeasible");
  const std::string error = json["error"];
  CHECK(error.starts_with("interrupted; no schedule of "));
  CHECK_FALSE(contains(error, "written"));
  CHECK(!std::filesystem::exists(output));
}

TEST_CASE("an interrupted search says where its best schedule is above the budget, and how to have it written") {
  const Folder folder;
  const core::Graph graph = large_graph(256);  // rounding up to 256 bytes would not change the sizes
  const std::string path = folder.write("large.json", core::graph_to_json(graph));
  const std::string budget = std::to_string(core::peak_lower_bound(graph));
  for (const char* command : {"solve", "run"}) {
    const Outcome outcome = interrupted({command, path, "--budget", budget, "--time-limit", "10m"});
    check_says(outcome.err,
               {"above the budget of ", core::format_bytes(core::peak_lower_bound(graph)) + " (", "\n  give -o"});
  }
}

TEST_CASE("Ctrl-C in info says what is known so far, as an error and in the object") {
  const Folder folder;
  const std::string path = folder.write("large.json", core::graph_to_json(large_graph()));
  const Outcome outcome = interrupted({"info", path, "--time-limit", "10m", "--json"});
  const auto json = outcome.json();
  check_fields(json, {{"interrupted", true}, {"exit_code", 130}});
  CHECK(json["error"].get<std::string>().starts_with("interrupted; the least budget known so far is "));
  CHECK(json["least_feasible_bytes"] > 0);
  CHECK(contains(outcome.err, json["error"].get<std::string>()));

  const Outcome shown = interrupted({"info", path, "--time-limit", "10m"});
  CHECK(contains(shown.out, "least budget known"));
  CHECK(shown.err.rfind("cairn: error: interrupted; ", 0) == 0);
}

TEST_CASE("Ctrl-C in an order solver keeps the best order and exits with 130") {
  const Folder folder;
  const std::string large = folder.write("large.json", core::graph_to_json(large_graph()));
  const std::string pumpkin = folder / "pumpkin.json", random = folder / "random.json";
  REQUIRE(run_command({"generate", "rising-pumpkin", "--branches", "20", "--length", "32", "-o", pumpkin}).code == 0);
  REQUIRE(run_command({"generate", "random", "--nodes", "120", "--edges", "240", "-o", random}).code == 0);
  const std::vector<std::pair<std::string, std::string>> jobs = {
      {"order", large}, {"order", random}, {"exact", random}, {"pumpkin", pumpkin}, {"sp", pumpkin}};
  for (const auto& [solver, path] : jobs) {
    INFO(solver << " on " << path);
    const std::string output = folder / (solver + "_schedule.json");
    const Outcome outcome =
        interrupted({"solve", path, "--solver", solver, "--time-limit", "10m", "-o", output, "--json"});
    const core::Graph graph = core::load_graph(path);
    const auto evaluation = core::evaluate(graph, core::load_schedule(output, graph).schedule);
    CHECK(evaluation.valid());
    CHECK(evaluation.recomputed == 0);
    CHECK(evaluation.peak <= core::evaluate(graph, core::baseline_schedule(graph)).peak);
    CHECK(outcome.json()["peak_bytes"] == evaluation.peak);
  }
}

TEST_CASE("Ctrl-C in measure writes what is measured, a valid graph, and names what is not") {
  const Folder folder;
  const std::string given = folder / "g.json", file = folder / "m.json";
  REQUIRE(run_command({"model", "resnet50", "--batch", "8", "--image", "128", "-o", given}).code == 0);
  const core::Graph before = core::load_graph(given);

  const Outcome outcome = interrupted({"measure", given, "-o", file, "--json"});
  CHECK(contains(outcome.err, "interrupted; "));
  const auto json = outcome.json();
  CHECK(json["interrupted"] == true);
  const auto unmeasured = static_cast<std::int64_t>(json["unmeasured_nodes"].size());
  CHECK(unmeasured + json["measured_nodes"].get<std::int64_t>() == before.node_count());
  REQUIRE(unmeasured > 0);
  if (json["measured_nodes"] == 0) {
    CHECK(contains(outcome.err, "nothing was written"));
    CHECK_FALSE(std::filesystem::exists(file));
    return;
  }
  CHECK(contains(outcome.err, "written to '" + file + "'"));
  const core::Graph measured = core::load_graph(file);
  CHECK(measured.fingerprint() == before.fingerprint());
  CHECK(contains(measured.cost_unit().source, std::to_string(unmeasured) + " nodes not measured"));
}

}  // namespace cairn::tests::interrupt_test
