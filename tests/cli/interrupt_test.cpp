#include "core/formats/files.h"
#include "core/profile.h"
#include "tests/catch.h"
#include "tests/cli/command.h"

namespace {

using namespace cairn;

/// Layers of nodes that read two of the layer before: large enough that no solver is done with it in a moment.
core::Graph large_graph() {
  constexpr core::NodeId kNodes = 20000, kLayer = 100;
  core::GraphBuilder builder("large");
  for (core::NodeId v = 0; v < kNodes; ++v) {
    core::Node node;
    node.name = std::to_string(v);
    node.size = 1 + v % 37;
    node.cost = 1 + v % 11;
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
  const test::Folder folder;
  const core::Graph graph = large_graph();
  const std::string path = folder.write("large.json", core::graph_to_json(graph));
  const std::string output = folder / "s.json";

  test::Child child({"solve", path, "--solver", "tw", "--time-limit", "10m", "-o", output, "--json"});
  child.wait_for_interrupt_handler();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  child.interrupt();
  const test::Outcome outcome = child.wait();

  INFO(outcome.err);
  REQUIRE(outcome.code == 130);
  CHECK(outcome.err.find("interrupted") != std::string::npos);
  const auto json = outcome.json();
  CHECK(json["interrupted"] == true);
  CHECK(json["valid"] == true);
  const auto file = core::load_schedule(output, graph);
  const auto evaluation = core::evaluate(graph, file.schedule);
  CHECK(evaluation.valid());
  CHECK(json["peak_bytes"] == evaluation.peak);
}
