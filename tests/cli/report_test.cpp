// Tests that the page of --report has the same figures as the output of the command.
#include <string>

#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"
#include "cairn/tests/support/report_data.h"

namespace cairn::tests::report_test {
namespace {

const Words kModel{"resnet18", "--batch", "1", "--image", "32"};

/// The JSON object that a command prints, together with the data in the page that the command writes for --report.
struct Told {
  Json json, data;
};
Told told_by(const Folder& folder, const Words& words) {
  const std::string page = folder / "r.html";
  const Json json = run_json(words + Words{"--report", page});
  return {json, data_of_page(read_text(page))};
}

}  // namespace

TEST_CASE("the page of solve has the baseline, the schedule and its plan") {
  const Folder folder;
  const auto [json, data] = told_by(folder, Words{"solve", "--budget", "80%", "-t", "1s"} + kModel);
  check_fields(data, {{"command", "cairn solve"}, {"budget_bytes", json["budget_bytes"]}});
  const Json &baseline = data["tracks"][0], &track = data["tracks"][1];
  CHECK(baseline["peak"]["bytes"] == json["baseline_peak_bytes"]);
  CHECK(baseline["cost"] == json["baseline_cost"]);
  CHECK(track["peak"]["bytes"] == json["peak_bytes"]);
  check_fields(track, {{"cost", json["cost"]}, {"length", json["steps"]}, {"arena_bytes", json["planned_bytes"]}});
  check_fields(data, {{"cost_unit", "ns"}, {"shown", 1}});
}

TEST_CASE("the page of info has the schedules of the least budget and of the one asked about") {
  const Folder folder;
  const auto [json, data] = told_by(folder, Words{"info", "--budget", "80%", "-t", "1s"} + kModel);
  CHECK(data["command"] == "cairn info");
  REQUIRE(data["tracks"].size() == 3);
  CHECK(data["tracks"][0]["peak"]["bytes"] == json["baseline_peak_bytes"]);
  check_fields(data["tracks"][1],
               {{"arena_bytes", json["least_budget"]["planned_bytes"]}, {"cost", json["least_budget"]["cost"]}});
  CHECK(data["tracks"][2]["arena_bytes"] <= json["budget_bytes"]);
  CHECK(data["tracks"][2]["cost"] == json["cost_within_budget"]);
}

TEST_CASE("a report is refused where it would overwrite an input") {
  const auto [folder, graph] = Diamond{};
  for (const std::string command : {"info", "solve"}) check_error({command, graph, "--report", graph}, 2, {"--report"});
  CHECK(read_text(graph) == diamond_graph());
  check_error({"solve", graph, "--solver", "tw", "--sweep", folder / "c.csv", "--report", folder / "r"}, 2,
              {"--report", "--sweep"});
}

}  // namespace cairn::tests::report_test
