// `cairn measure`, precisions and the check against the host.
#include <algorithm>

#include "cairn/core/formats/files.h"
#include "cairn/core/op.h"
#include "cairn/core/profile.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace {

using namespace cairn;
using test::Folder;
using test::operator+;
using test::Words;

const Words kTiny = {"ffn", "--batch", "4", "--layers", "3", "--width", "16", "--inputs", "8", "--outputs", "4"};

void check_fails(const Words& words, int code, const std::string& part) {
  const auto outcome = test::run_command(words);
  INFO(outcome.err);
  CHECK(outcome.code == code);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.find(part) != std::string::npos);
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
}

}  // namespace

TEST_CASE("measure writes the time of every op as its cost, and nothing else changes") {
  const Folder folder;
  const std::string before = folder / "before.json", after = folder / "after.json";
  REQUIRE(test::run_command(Words{"model"} + kTiny + Words{"-o", before, "--quiet"}).code == 0);
  const auto outcome = test::run_command(Words{"measure"} + kTiny + Words{"-o", after, "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const core::Graph given = core::load_graph(before), measured = core::load_graph(after);
  CHECK(given.fingerprint() == measured.fingerprint());
  REQUIRE(given.node_count() == measured.node_count());
  for (core::NodeId v = 0; v < given.node_count(); ++v) {
    CHECK(measured.cost(v) >= 1);
    CHECK(*measured.op(v) == *given.op(v));
  }
  const auto json = outcome.json();
  CHECK(json["backend"] == "host");
  CHECK(json["precision"] == "fp32");
  CHECK(json["measured_nodes"] == given.node_count());
  CHECK(json["distinct_ops"].get<std::int64_t>() <= given.node_count());
  CHECK(json["baseline_cost_ns"] == core::evaluate(measured, core::baseline_schedule(measured)).cost);

  const auto run = test::run_command({"run", after, "--budget", "90%", "--json"});
  REQUIRE(run.code == 0);
  const auto baseline = run.json()["baseline"];
  CHECK(baseline["predicted_seconds"].get<double>() == Approx(baseline["cost"].get<double>() / 1e9));
  CHECK(run.json()["scheduled"].contains("time_increase_pct"));
}

TEST_CASE("measure keeps the costs of nodes without an op") {
  const Folder folder;
  const std::string graph = folder.write("g.json", test::diamond_graph());
  const auto outcome = test::run_command({"measure", graph, "-o", folder / "m.json", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.json()["measured_nodes"] == 0);
  const core::Graph given = core::load_graph(graph), measured = core::load_graph(folder / "m.json");
  for (core::NodeId v = 0; v < given.node_count(); ++v) CHECK(given.cost(v) == measured.cost(v));
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
  const auto outcome = test::run_command(Words{"run"} + kTiny + Words{"--budget", "90%", "--check", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const auto check = outcome.json()["host_check"];
  CHECK(check["passed"] == true);
  CHECK(check["worst_output"] == "");
  CHECK(check["outputs"].get<std::int64_t>() > 0);
}

TEST_CASE("measure refuses to overwrite its input") {
  const Folder folder;
  const std::string graph = folder.write("g.json", test::diamond_graph());
  check_fails({"measure", graph, "-o", graph}, 2, "-o");
}
