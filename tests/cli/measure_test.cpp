// Tests `cairn measure`, the option --precision, and `cairn run --check`, which compares results of a run with results
// that the host has computed.
#include <algorithm>

#include "cairn/core/formats/files.h"
#include "cairn/core/op.h"
#include "cairn/core/profile.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace cairn::tests::measure_test {
namespace {

const Words kTiny = {"ffn", "--batch", "4", "--layers", "3", "--width", "16", "--inputs", "8", "--outputs", "4"};

void check_fails(const Words& words, int code, const std::string& part) {
  const auto outcome = run_command(words);
  INFO(outcome.err);
  CHECK(outcome.code == code);
  CHECK(outcome.out.empty());
  CHECK(contains(outcome.err, part));
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
}

}  // namespace

TEST_CASE("measure writes the time of every op as its cost, and nothing else changes") {
  const Folder folder;
  const std::string before = folder / "before.json", after = folder / "after.json";
  REQUIRE(run_command(Words{"model"} + kTiny + Words{"-o", before, "--quiet"}).code == 0);
  const Json json = run_json(Words{"measure"} + kTiny + Words{"-o", after});
  const core::Graph given = core::load_graph(before), measured = core::load_graph(after);
  CHECK(given.fingerprint() == measured.fingerprint());
  REQUIRE(given.node_count() == measured.node_count());
  for (core::NodeId v = 0; v < given.node_count(); ++v) {
    CHECK(measured.cost(v) >= 1);
    CHECK(*measured.op(v) == *given.op(v));
  }
  check_fields(json, {{"backend", "host"}, {"precision", "fp32"}, {"measured_nodes", given.node_count()}});
  CHECK(json["distinct_ops"].get<std::int64_t>() <= given.node_count());
  CHECK(json["baseline_cost_ns"] == core::evaluate(measured, core::baseline_schedule(measured)).cost);

  const Json run = run_json({"run", after, "--budget", "90%"});
  const Json& baseline = run["baseline"];
  CHECK(baseline["predicted_seconds"].get<double>() == Approx(baseline["cost"].get<double>() / 1e9));
  CHECK(run["scheduled"].contains("time_increase_pct"));
}

TEST_CASE("measure gives the costs of nodes without an op in ns, if their unit is known") {
  const Folder folder;
  const auto graph = [&](const std::string& unit) {
    return folder.write("g.json", R"({"format":"cairn.graph","version":2,"cost_unit":")" + unit + R"(",
      "residents":[{"name":"x","role":"data","type":"f32","shape":[8],"init":"normal","scale":1.0}],"nodes":[
      {"name":"a","size":32,"cost":2,"inputs":[],"op":{"kind":"relu","shape":[8],"args":["r0"]}},
      {"name":"b","size":32,"cost":5,"inputs":[0]}]})");
  };
  const std::string file = folder / "m.json";
  const Json measured = run_json({"measure", graph("ms"), "-o", file});
  CHECK(core::load_graph(file).cost(1) == 5'000'000);
  CHECK(measured["baseline_cost_ns"] > 5'000'000);
  CHECK(run_json({"measure", graph("steps"), "-o", file})["baseline_cost_ns"].is_null());
  CHECK(core::load_graph(file).cost(1) == 5);
  CHECK_FALSE(core::load_graph(file).cost_unit().known());
}

TEST_CASE("measure keeps the costs of nodes without an op") {
  const auto [folder, graph] = Diamond{};
  const Json json = run_json({"measure", graph, "-o", folder / "m.json"});
  check_fields(json, {{"measured_nodes", 0}, {"nodes_without_op", 4}});
  CHECK(contains(run_command({"measure", graph}).out, "4 of 4 nodes, whose costs are not measured"));
  const core::Graph given = core::load_graph(graph), measured = core::load_graph(folder / "m.json");
  for (core::NodeId v = 0; v < given.node_count(); ++v) CHECK(given.cost(v) == measured.cost(v));
}

TEST_CASE("measure tells what it did: unit and source of the costs, timings and repeats, threads") {
  const Folder folder;
  const std::string file = folder / "m.json";
  const auto json = run_json(Words{"measure"} + kTiny + Words{"-o", file, "--threads", "1"});
  CHECK(json["threads"] == 1);
  CHECK(contains(json["device"], "1 threads"));
  CHECK(json["cost_unit"] == "ns");
  const std::string source = json["cost_source"];
  CHECK(source == "measured on " + json["device"].get<std::string>() + ", fp32");
  CHECK(core::load_graph(file).cost_unit() == core::CostUnit{"ns", source});
  CHECK(json["unmeasured_nodes"].empty());
  CHECK(json["estimate_scale"].is_null());
  CHECK(json["measured_ops"] == json["distinct_ops"]);
  CHECK(json["timings"].get<std::int64_t>() >= 5 * json["distinct_ops"].get<std::int64_t>());
  CHECK(json["repeated_timings"].get<std::int64_t>() <= json["timings"].get<std::int64_t>());
  CHECK(json["baseline_cost_before_source"] == "roofline model of an NVIDIA H200, fp32");
  const auto table = run_command(Words{"measure"} + kTiny);
  check_says(table.out, {"disturbed and repeated", " ns (roofline model of an NVIDIA H200, fp32)"});

  // If the costs in the graph were measured on this machine, the table of `run` also shows the times that they predict.
  // If the costs come from a model of another machine, the table shows no predicted times.
  const auto run = [&](const Words& graph, const Words& more) {
    return Words{"run"} + graph + Words{"--budget", "100%", "--repeat", "1", "--time-limit", "2s"} + more;
  };
  const auto measured = run_json(run({file}, {"--threads", "1"}));
  check_fields(measured, {{"predicted_by", source}, {"predicts_this_machine", true}});
  CHECK(contains(run_command(run({file}, {"--threads", "1"})).out, "\npredicted time"));
  CHECK(run_json(run({file}, {"--threads", "2"}))["predicts_this_machine"] == false);
  const auto estimated = run_json(run(kTiny, {}));
  check_fields(estimated,
               {{"predicted_by", "roofline model of an NVIDIA H200, fp32"}, {"predicts_this_machine", false}});
  CHECK(estimated["baseline"]["predicted_seconds"].get<double>() > 0);
  const std::string text = run_command(run(kTiny, {})).out;
  CHECK_FALSE(contains(text, "\npredicted time"));
  CHECK(contains(text, "costs come from another machine: roofline model of an NVIDIA H200, fp32\n"));
  const auto unknown = run_json({"run", folder.write("g.json", diamond_graph()), "--budget", "100%"});
  CHECK(unknown["baseline"]["predicted_seconds"].is_null());
  CHECK(unknown["predicted_by"] == "costs of the graph's file");
}

TEST_CASE("measure keeps to its time limit, writes what it has and says what is not measured") {
  const Folder folder;
  const Words model = {"resnet50", "--batch", "8", "--image", "64"};
  const std::string file = folder / "m.json", given = folder / "g.json";
  REQUIRE(run_command(Words{"model"} + model + Words{"-o", given, "--quiet"}).code == 0);
  // Doubles the time limit until it is long enough to measure one op on this machine.
  Outcome outcome;
  for (int milliseconds = 250; outcome.code != 0 && milliseconds < 60'000; milliseconds *= 2) {
    outcome =
        run_command({"measure", given, "--time-limit", std::to_string(milliseconds) + "ms", "-o", file, "--json"});
  }
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const auto json = outcome.json();
  const core::Graph before = core::load_graph(given), measured = core::load_graph(file);
  CHECK(measured.fingerprint() == before.fingerprint());
  const auto unmeasured = json["unmeasured_nodes"].get<std::vector<std::string>>();
  REQUIRE_FALSE(unmeasured.empty());
  REQUIRE(json["measured_nodes"].get<std::int64_t>() > 0);
  CHECK(static_cast<std::int64_t>(unmeasured.size()) + json["measured_nodes"].get<std::int64_t>() ==
        before.node_count());
  CHECK(json["measured_ops"].get<std::int64_t>() < json["distinct_ops"].get<std::int64_t>());
  const double scale = json["estimate_scale"];
  for (core::NodeId v = 0; v < before.node_count(); ++v) {
    if (std::find(unmeasured.begin(), unmeasured.end(), before.name(v)) == unmeasured.end()) continue;
    CHECK(static_cast<double>(measured.cost(v)) == Approx(scale * static_cast<double>(before.cost(v))).margin(1));
  }
  CHECK(contains(measured.cost_unit().source, std::to_string(unmeasured.size()) + " nodes not measured: "));

  // If no op is measured within the limit, the command fails and writes no graph.
  const std::string none = folder / "none.json";
  check_fails({"measure", given, "--time-limit", "1ms", "-o", none}, 4, "raise --time-limit");
  CHECK(read_text(none).empty());
}

TEST_CASE("the host executes fp32 only, and says so") {
  const Folder folder;
  for (const std::string precision : {"tf32", "bf16"}) {
    check_fails(Words{"run"} + kTiny + Words{"--budget", "90%", "--backend", "host", "--precision", precision}, 2,
                "--backend cuda");
    check_fails(Words{"measure"} + kTiny + Words{"--backend", "host", "--precision", precision}, 2, "--backend cuda");
  }
  check_fails(Words{"run"} + kTiny + Words{"--budget", "90%", "--precision", "bf61"}, 2, "bf16");
}

TEST_CASE("without a device, cuda is exit 5 with the reason") {
  check_fails(Words{"run"} + kTiny + Words{"--budget", "90%", "--backend", "cuda"}, 5, "--backend cuda: ");
  check_fails(Words{"measure"} + kTiny + Words{"--backend", "cuda"}, 5, "--backend cuda: ");
}

TEST_CASE("run --check finds the host's own bits") {
  const Json check = run_json(Words{"run"} + kTiny + Words{"--budget", "90%", "--check"})["host_check"];
  check_fields(check, {{"passed", true}, {"worst_output", ""}});
  CHECK(check["outputs"].get<std::int64_t>() > 0);
}

TEST_CASE("measure refuses to overwrite its input") {
  const auto [folder, graph] = Diamond{};
  check_fails({"measure", graph, "-o", graph}, 2, "-o");
}

}  // namespace cairn::tests::measure_test
