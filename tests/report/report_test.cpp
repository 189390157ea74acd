#include "cairn/report/html/report.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/report/explain/support/explain.h"
#include "cairn/report/pages.h"
#include "cairn/solvers/fit/solve.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/json.h"
#include "cairn/tests/support/parts.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/report_data.h"

namespace cairn::tests::report_test {
namespace {

using Json = nlohmann::json;

report::Report report_of(const core::Graph& graph, const core::Schedule& schedule,
                         std::optional<core::Plan> plan = {}) {
  return {.title = graph.name(),
          .graph = graph,
          .schedules = {{"baseline", core::baseline_schedule(graph), {}}, {"schedule", schedule, std::move(plan)}},
          .shown = 1};
}

/// Returns a chain in which every third node is kept, so that memory rises towards the end. The node `spike` has a
/// scratch so large that its step is the peak.
core::Graph long_chain(std::int32_t nodes, std::int32_t spike) {
  core::GraphBuilder builder("chain");
  for (std::int32_t v = 0; v < nodes; ++v) {
    core::Node node{.name = "node" + std::to_string(v), .size = 100 + v % 7, .cost = v % 5, .keep = v % 3 == 0};
    if (v == spike) node.scratch = 1'000'000'000;
    if (v > 0) node.inputs = {v - 1};
    builder.add(node);
  }
  return builder.build();
}

}  // namespace

TEST_CASE("a page has every number of the evaluator, and the tensors sum to it at every step", "[report]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const core::Graph graph = random_graph(random, any_graph(seed));
    const core::Schedule schedule = random_schedule(random, graph);
    const solvers::PlanSolution planned = fit::checked_plan(graph, schedule, {.alignment = 1, .limit = {.work = 1000}});
    const Json data = Json::parse(report::report_data(report_of(graph, schedule, planned.plan)));
    const core::Evaluation evaluation = core::evaluate(graph, schedule);
    const std::vector<std::int64_t> profile = core::Evaluator(graph).profile(schedule.steps);
    const Json &track = data["tracks"][1], &lives = track["lives"], &tensors = data["tensors"], &nodes = data["nodes"];
    INFO("seed " << seed);

    CHECK(data["tracks"][0]["peak"]["bytes"] == core::evaluate(graph, core::baseline_schedule(graph)).peak);
    check_fields(track, {{"length", schedule.length()}, {"cost", evaluation.cost}});
    check_fields(track["peak"], {{"bytes", evaluation.peak}, {"at", evaluation.peak_step}});
    CHECK(track["at"].is_null());
    CHECK(track["arena_bytes"] == planned.plan.bytes);
    std::int64_t cost = 0;
    for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
      CHECK(track["bytes"][i] == profile[2 * i + 1]);
      CHECK(nodes["name"][track["node"][i].get<std::size_t>()] == graph.name(schedule.steps[i]));
      if (!track["before"].is_null()) CHECK(track["before"][i] == cost);
      cost += graph.cost(schedule.steps[i]);
      std::int64_t live = nodes["scratch"][track["node"][i].get<std::size_t>()];
      for (std::size_t life = 0; life < lives["tensor"].size(); ++life) {
        if (lives["first"][life] <= i && i <= lives["last"][life])
          live += tensors["bytes"][lives["tensor"][life].get<std::size_t>()].get<std::int64_t>();
      }
      CHECK(live == profile[2 * i + 1]);
    }
    for (const char* group : {"by_kind", "by_layer"}) {
      std::int64_t sum = 0;
      for (const Json& row : track["peak"][group]) sum += row["bytes"].get<std::int64_t>();
      CHECK(sum == evaluation.peak);
    }
    // The page must have the same offsets as the plan. The test compares sums, in which each offset counts as offset +
    // 1, so that offsets of 0 count, too.
    std::int64_t placed = 0;
    for (const core::Buffer& buffer : planned.plan.buffers) placed += buffer.scratch ? 0 : buffer.offset + 1;
    for (std::size_t life = 0; life < lives["offset"].size(); ++life)
      placed -= lives["offset"][life].get<std::int64_t>() + 1;
    CHECK(placed == 0);
    if (evaluation.recomputed == 0) {
      CHECK(track["recomputed"].is_null());
    } else {
      CHECK(track["recomputed"]["total"]["times"] == evaluation.recomputed);
      std::int64_t times = 0, extra = 0;
      for (const Json& row : track["recomputed"]["nodes"]) {
        times += row["times"].get<std::int64_t>();
        extra += row["extra_cost"].get<std::int64_t>();
      }
      CHECK(times == evaluation.recomputed);
      CHECK(extra == evaluation.cost - core::evaluate(graph, core::baseline_schedule(graph)).cost);
    }
  }
}

TEST_CASE("names cannot end or change the page that they are in", "[report]") {
  const std::string evil = "</script><script>alert(1)</script><!--", odd = "tab\there\x01\x7f", broken = "\xff\xfe";
  core::GraphBuilder builder(evil);
  builder.add({.name = evil, .size = 1});
  builder.add({.name = odd, .size = 1, .inputs = {0}});
  builder.add({.name = broken, .size = 1, .inputs = {1}});
  builder.add({.name = "größe \u2028 \u202e", .size = 1, .inputs = {2}});
  const core::Graph graph = builder.build();
  report::Report report = report_of(graph, core::baseline_schedule(graph));
  report.notes = {evil};
  const std::string page = report::report_page(report);
  const std::string plain = report::report_page(report_of(core::Graph(), {}));
  CHECK(times(page, "<script") == times(plain, "<script"));
  CHECK(times(page, "</script") == times(plain, "</script"));
  CHECK(times(page, "<!--") == times(plain, "<!--"));
  CHECK(contains(page, "<title>&lt;/script>"));
  const Json data = data_of_page(page);
  CHECK(data["title"] == evil);
  CHECK(data["notes"][0] == evil);
  CHECK(data["nodes"]["name"][0] == evil);
  CHECK(data["nodes"]["name"][1] == odd);
  CHECK(data["nodes"]["name"][2] == "\ufffd\ufffd");
  CHECK(data["nodes"]["name"][3] == "größe \u2028 \u202e");
  for (const char c : report::report_data(report)) {
    if (c < ' ' || c == '<' || c == '\x7f') FAIL("a byte that may not be in the page's data");
  }
}

TEST_CASE("a page needs no network and tells whose work it holds", "[report]") {
  const core::Graph graph = long_chain(5, 2);
  const std::string page = report::report_page(report_of(graph, core::baseline_schedule(graph)));
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.ends_with("</html>\n"));
  for (const char* part : {"src=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("}) {
    INFO(part);
    CHECK(times(page, part) == 0);
  }
  CHECK(times(page, "http") == 1);  // the only address is uPlot's home page, in uPlot's notice
  check_says(page, {"Copyright (c) 2022 Leon Sorokin", "Permission is hereby granted, free of charge"});
}

TEST_CASE("pages of long schedules are small, and their peaks exact", "[report]") {
  constexpr std::int32_t kNodes = 60'000, kSpike = 33'333;
  const core::Graph graph = long_chain(kNodes, kSpike);
  core::Schedule schedule = core::baseline_schedule(graph);
  schedule.steps.push_back(0);
  const std::string page = report::report_page(report_of(graph, core::drop_unread(graph, schedule)));
  CHECK(page.size() < 4'000'000);
  const Json data = data_of_page(page), &track = data["tracks"][0];
  const core::Evaluation evaluation = core::evaluate(graph, core::baseline_schedule(graph));
  const std::vector<std::int64_t> profile = core::Evaluator(graph).profile(core::baseline_schedule(graph).steps);
  CHECK(track["length"] == kNodes);
  check_fields(track["peak"], {{"bytes", evaluation.peak}, {"at", kSpike}});
  const std::vector<std::int64_t> at = track["at"], bytes = track["bytes"], before = track["before"];
  REQUIRE(at.size() == bytes.size());
  CHECK(at.size() < 13'000);
  CHECK(at.front() == 0);
  CHECK(std::is_sorted(at.begin(), at.end()));
  CHECK(std::adjacent_find(at.begin(), at.end()) == at.end());
  CHECK(*std::max_element(bytes.begin(), bytes.end()) == evaluation.peak);
  std::int64_t cost = 0, step = 0;
  for (std::size_t k = 0; k < at.size(); ++k) {
    for (; step < at[k]; ++step) cost += graph.cost(static_cast<core::NodeId>(step));
    if (bytes[k] != profile[static_cast<std::size_t>(2 * at[k] + 1)] || before[k] != cost) FAIL("point " << k);
  }
  // Of so many lifetimes, the page shows only those that are largest in bytes times steps. They belong to the values
  // that are in memory for the longest time.
  CHECK(track["lives_of"] == kNodes);
  CHECK(track["lives_share"] > 0.3);
  CHECK(track["lives_share"] < 1);
}

TEST_CASE("an invalid schedule is refused, an empty graph is not", "[report]") {
  const core::Graph graph = long_chain(5, 2);
  CHECK_THROWS_AS(report::report_page(report_of(graph, {{4, 3}})), core::InputError);
  CHECK(data_of_page(report::report_page(report_of(core::Graph(), {})))["tracks"][0]["length"] == 0);
}

TEST_CASE("the picture of a tradeoff has steps, and says what it leaves out", "[report]") {
  report::ReportTradeoff tradeoff{
      .found = {{500, 1500, "a"}, {600, 104, "b"}, {700, 103, "knee", "", true}, {800, 102, "c"}, {900, 101, "d"}},
      .baseline = {1000, 100, "baseline"},
      .lower_bound_bytes = 400};
  tradeoff.proved = {{900, 100}, {600, 102}};
  const std::string svg = report::tradeoff_svg(tradeoff);
  const std::size_t begin = svg.find("<path class='curve' d='") + 23;
  const std::string path = svg.substr(begin, svg.find('\'', begin) - begin);
  CHECK(path.find('L') == std::string::npos);
  CHECK(times(path, "H") == 6);
  check_says(svg, {"1 point above the picture", "extra cost (%)", "peak memory (B)", "knee: 700 B, +3.0%"});
  CHECK_FALSE(contains(svg, "nan"));
}

}  // namespace cairn::tests::report_test
