#include "cairn/core/formats/files.h"
#include "cairn/core/profile.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace cairn::interrupt_test {
namespace {

using cairn::tests::check_fields;

/// Layers of nodes that read two of the layer before: large enough that no solver is done with it in a moment.
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

/// Runs the command and sends it Ctrl-C while it searches.
test::Outcome interrupted(const std::vector<std::string>& words) {
  test::Child child(words);
  child.wait_for_interrupt_handler();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  child.interrupt();
  return child.wait();
}

}  // namespace

TEST_CASE("Ctrl-C in a long solve keeps the best schedule and exits with 130") {
  const test::Folder folder;
  const core::Graph graph = large_graph();
  const std::string path = folder.write("large.json", core::graph_to_json(graph));
  const std::string output = folder / "s.json";

  const test::Outcome outcome =
      interrupted({"solve", path, "--solver", "auto", "--time-limit", "10m", "-o", output, "--json"});

  INFO(outcome.err);
  REQUIRE(outcome.code == 130);
  CHECK(outcome.err.find("interrupted") != std::string::npos);
  const auto json = outcome.json();
  check_fields(json, {{"interrupted", true}, {"valid", true}});
  const auto file = core::load_schedule(output, graph);
  const auto evaluation = core::evaluate(graph, file.schedule);
  CHECK(evaluation.valid());
  CHECK(json["peak_bytes"] == evaluation.peak);
}

TEST_CASE("an interrupted search for the least budget still says that no schedule fits") {
  const test::Folder folder;
  const std::string path = folder.write("large.json", core::graph_to_json(large_graph())), output = folder / "s.json";
  // The largest node alone has more bytes than the budget.
  const test::Outcome outcome = interrupted({"solve", path, "-b", "20", "--time-limit", "10m", "-o", output, "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 130);
  const auto json = outcome.json();
  CHECK(json["status"] == "infeasible");
  const std::string error = json["error"];
  CHECK(error.starts_with("interrupted; no schedule of "));
  CHECK(error.find("written") == std::string::npos);
  CHECK(!std::filesystem::exists(output));
}

TEST_CASE("an interrupted search says where its best schedule is above the budget, and how to have it written") {
  const test::Folder folder;
  const core::Graph graph = large_graph(256);  // so that alignment does not prove the budget too small
  const std::string path = folder.write("large.json", core::graph_to_json(graph));
  const std::string budget = std::to_string(core::peak_lower_bound(graph));
  for (const char* command : {"solve", "run"}) {
    const test::Outcome outcome = interrupted({command, path, "--budget", budget, "--time-limit", "10m"});
    INFO(outcome.err);
    CHECK(outcome.code == 130);
    CHECK(outcome.err.find("above the budget of ") != std::string::npos);
    CHECK(outcome.err.find(core::format_bytes(core::peak_lower_bound(graph)) + " (") != std::string::npos);
    CHECK(outcome.err.find("\n  give -o") != std::string::npos);
  }
}

TEST_CASE("Ctrl-C in info says what is known so far, as an error and in the object") {
  const test::Folder folder;
  const std::string path = folder.write("large.json", core::graph_to_json(large_graph()));
  const test::Outcome outcome = interrupted({"info", path, "--time-limit", "10m", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 130);
  const auto json = outcome.json();
  check_fields(json, {{"interrupted", true}, {"exit_code", 130}});
  CHECK(json["error"].get<std::string>().starts_with("interrupted; the least budget known so far is "));
  CHECK(json["least_feasible_bytes"] > 0);
  CHECK(outcome.err.find(json["error"].get<std::string>()) != std::string::npos);

  const test::Outcome shown = interrupted({"info", path, "--time-limit", "10m"});
  CHECK(shown.code == 130);
  CHECK(shown.out.find("least budget known") != std::string::npos);
  CHECK(shown.err.rfind("cairn: error: interrupted; ", 0) == 0);
}

TEST_CASE("Ctrl-C in an order solver keeps the best order and exits with 130") {
  const test::Folder folder;
  const std::string large = folder.write("large.json", core::graph_to_json(large_graph()));
  const std::string pumpkin = folder / "pumpkin.json", random = folder / "random.json";
  REQUIRE(test::run_command({"generate", "rising-pumpkin", "--branches", "20", "--length", "32", "-o", pumpkin}).code ==
          0);
  REQUIRE(test::run_command({"generate", "random", "--nodes", "120", "--edges", "240", "-o", random}).code == 0);
  const std::vector<std::pair<std::string, std::string>> jobs = {
      {"order", large}, {"order", random}, {"exact", random}, {"pumpkin", pumpkin}, {"sp", pumpkin}};
  for (const auto& [solver, path] : jobs) {
    INFO(solver << " on " << path);
    const std::string output = folder / (solver + "_schedule.json");
    const test::Outcome outcome =
        interrupted({"solve", path, "--solver", solver, "--time-limit", "10m", "-o", output, "--json"});
    INFO(outcome.err);
    REQUIRE(outcome.code == 130);
    const core::Graph graph = core::load_graph(path);
    const auto evaluation = core::evaluate(graph, core::load_schedule(output, graph).schedule);
    CHECK(evaluation.valid());
    CHECK(evaluation.recomputed == 0);
    CHECK(evaluation.peak <= core::evaluate(graph, core::baseline_schedule(graph)).peak);
    CHECK(outcome.json()["peak_bytes"] == evaluation.peak);
  }
}

TEST_CASE("Ctrl-C in measure writes what is measured, a valid graph, and names what is not") {
  const test::Folder folder;
  const std::string given = folder / "g.json", file = folder / "m.json";
  REQUIRE(test::run_command({"model", "resnet50", "--batch", "8", "--image", "128", "-o", given}).code == 0);
  const core::Graph before = core::load_graph(given);

  const test::Outcome outcome = interrupted({"measure", given, "-o", file, "--json"});

  INFO(outcome.err);
  REQUIRE(outcome.code == 130);
  CHECK(outcome.err.find("interrupted; ") != std::string::npos);
  const auto json = outcome.json();
  CHECK(json["interrupted"] == true);
  const auto unmeasured = static_cast<std::int64_t>(json["unmeasured_nodes"].size());
  CHECK(unmeasured + json["measured_nodes"].get<std::int64_t>() == before.node_count());
  REQUIRE(unmeasured > 0);
  if (json["measured_nodes"] == 0) {
    CHECK(outcome.err.find("nothing was written") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(file));
    return;
  }
  CHECK(outcome.err.find("written to '" + file + "'") != std::string::npos);
  const core::Graph measured = core::load_graph(file);
  CHECK(measured.fingerprint() == before.fingerprint());
  CHECK(measured.cost_unit().source.find(std::to_string(unmeasured) + " nodes not measured") != std::string::npos);
}

}  // namespace cairn::interrupt_test
