// Tests how info, solve and run explain the peak and the savings of recomputation. Also tests the trace files that
// solve and run write.
#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace cairn::tests::explain_test {
namespace {

const Words kModel = {"ffn", "--layers", "6", "--batch", "64", "--width", "32", "--inputs", "16", "--outputs", "8"};

/// Checks three ways to split a peak: the bytes by kind of tensor, by layer, and by tensor must each add up to `bytes`.
void check_peak(const Json& peak, std::int64_t bytes) {
  CHECK(peak["bytes"] == bytes);
  for (const char* key : {"by_kind", "by_layer", "tensors"}) {
    std::int64_t sum = 0, tensors = 0;
    for (const Json& part : peak[key]) {
      sum += part["bytes"].get<std::int64_t>();
      tensors += part.value("tensors", 1);
    }
    CAPTURE(key);
    CHECK(sum == bytes);
    CHECK(tensors == peak["tensor_count"]);
  }
  CHECK(peak["layer_count"] == peak["by_layer"].size());
}

void check_savings(const Json& json, std::int64_t recomputed, std::int64_t extra_cost) {
  const Json& all = json["recomputation"];
  check_fields(all, {{"times", recomputed}, {"extra_cost", extra_cost}});
  for (const char* key : {"by_layer", "by_node"}) {
    std::map<std::string, std::int64_t> sums;
    for (const Json& part : all[key]) {
      for (const char* what : {"times", "extra_cost", "saved_at_baseline_peak_bytes", "saved_at_peak_bytes"})
        sums[what] += part[what].get<std::int64_t>();
    }
    for (const auto& [what, sum] : sums) CHECK(sum == all[what]);
  }
  for (const Json& node : all["by_node"]) {
    CHECK(static_cast<std::int64_t>(node["runs"].size()) ==
          std::min<std::int64_t>(node["times"].get<std::int64_t>(), 10));
    for (const Json& run : node["runs"]) {
      CHECK(run["made_step"] <= run["dropped_after_step"]);
      CHECK(run["dropped_after_step"] < run["step"]);
      if (!run["first_use_step"].is_null()) CHECK(run["step"] < run["first_use_step"]);
    }
  }
  const Json& at = all["at_baseline_peak"];
  check_fields(at, {{"baseline_bytes", json["peak"]["baseline"]["bytes"]},
                    {"recomputed_later_bytes", all["saved_at_baseline_peak_bytes"]}});
  CHECK(at["baseline_bytes"].get<std::int64_t>() - at["recomputed_later_bytes"].get<std::int64_t>() -
            at["other_order_bytes"].get<std::int64_t>() + at["held_more_bytes"].get<std::int64_t>() ==
        at["schedule_bytes"]);
}

}  // namespace

TEST_CASE("info says what the baseline's peak is made of") {
  const Words words = Words{"info"} + kModel + Words{"--work-limit", "100000"};
  const Json json = run_json(words);
  check_fields(json["peak"], {{"kinds_known", true}, {"layers_known", true}});
  CHECK_FALSE(json["peak"].contains("schedule"));
  CHECK_FALSE(json.contains("recomputation"));
  check_peak(json["peak"]["baseline"], json["baseline_peak_bytes"]);
  std::int64_t before = INT64_MAX;
  for (const Json& tensor : json["peak"]["baseline"]["tensors"]) {
    CHECK(tensor["bytes"] <= before);
    before = tensor["bytes"];
  }

  const auto brief = run_command(words), all = run_command(words + Words{"--explain"});
  check_says(brief.out, {"\nat the peak", "\nactivations "});
  CHECK_FALSE(contains(brief.out, "\nby layer "));
  CHECK(all.out.starts_with(brief.out.substr(0, brief.out.find("least budget"))));
  check_says(all.out, {"\nby layer ", "\nlargest at the baseline's peak "});
  CHECK(contains(all.out, " steps\n"));  // a column says for how many steps a tensor is idle

  // With a budget, info also explains the peak of the cheapest schedule that it has found within the budget.
  const Json budgeted = run_json(words + Words{"--budget", "60%"});
  check_peak(budgeted["peak"]["baseline"], budgeted["baseline_peak_bytes"]);
  const std::int64_t bytes = budgeted["peak"]["schedule"]["bytes"];
  check_peak(budgeted["peak"]["schedule"], bytes);
  CHECK(bytes <= budgeted["budget_bytes"]);
  check_savings(budgeted, budgeted["recomputation"]["times"],
                budgeted["cost_within_budget"].get<std::int64_t>() - budgeted["baseline_cost"].get<std::int64_t>());
  CHECK(budgeted["recomputation"]["times"] > 0);
}

TEST_CASE("solve and run set the schedule's peak beside the baseline's, and say what recomputation saves") {
  const Folder folder;
  const Words words = kModel + Words{"--budget", "60%", "--work-limit", "100000", "--trace", folder / "t.json"};
  for (const std::string command : {"solve", "run"}) {
    CAPTURE(command);
    const Json json = run_json(Words{command} + words);
    const Json& scheduled = command == "run" ? json["scheduled"] : json;
    check_peak(json["peak"]["baseline"], json["baseline_peak_bytes"]);
    check_peak(json["peak"]["schedule"], scheduled["peak_bytes"]);
    REQUIRE(scheduled["recomputed"] > 0);
    check_savings(json, scheduled["recomputed"],
                  scheduled["cost"].get<std::int64_t>() - json["baseline_cost"].get<std::int64_t>());

    const Json trace = read_json(folder / "t.json");
    std::map<std::string, std::int64_t> phases, threads;
    for (const Json& event : trace["traceEvents"]) {
      ++phases[event["ph"]];
      if (event["name"] == "thread_name") ++threads[event["args"]["name"]];
    }
    check_fields(phases, {{"s", scheduled["recomputed"]}, {"f", scheduled["recomputed"]}});
    check_fields(threads, {{"schedule", 1}, {"baseline", 1}});
    CHECK(threads["activation 1"] == 2);  // one track for each of the two schedules

    const auto brief = run_command(Words{command} + words),
               all = run_command(Words{command} + words + Words{"--explain"});
    check_says(brief.out, {"\nrecomputed  ", "\nlayers saving most "});
    CHECK_FALSE(contains(brief.out, "saves at the baseline's peak"));
    check_says(all.out, {"saves at the baseline's peak", "\nlargest at the schedule's peak "});
  }
}

TEST_CASE("lists are cut at a hundred entries, and counted whole; a graph without marks has tensors") {
  const Folder folder;
  Json nodes = Json::array(), inputs = Json::array();
  for (int i = 0; i < 150; ++i) {
    nodes.push_back({{"name", "x" + std::to_string(i)}, {"size", 10}, {"cost", 1}, {"inputs", Json::array()}});
    inputs.push_back(i);
  }
  nodes.push_back({{"name", "sum"}, {"size", 1}, {"cost", 1}, {"inputs", inputs}});
  const Json graph = {{"format", "cairn.graph"}, {"version", 1}, {"name", "wide"}, {"nodes", nodes}};
  const std::string path = folder.write("g.json", graph.dump());
  const Json json = run_json({"info", path, "--work-limit", "1000"});
  const Json& peak = json["peak"]["baseline"];
  CHECK(peak["tensor_count"] == 151);
  CHECK(peak["tensors"].size() == 100);
  check_fields(json["peak"], {{"kinds_known", false}, {"layers_known", false}});
  CHECK(peak["by_kind"] == Json::array({{{"kind", "tensor"}, {"bytes", 1501}, {"tensors", 151}}}));
  const auto all = run_command({"info", path, "--work-limit", "1000", "--explain"});
  check_says(all.out, {"does not say which of its nodes are forward", "and 146 more\n"});
}

}  // namespace cairn::tests::explain_test
