// Tests that `cairn solve --backend cuda` finds the same schedules as `cairn solve` on the host. With this option, the
// command fills the tables of its dynamic programs on a fake device.
#include "cairn/tests/catch.h"
#include "cairn/tests/fake_cuda/fake_command.h"

namespace cairn::tests::solve_test {
namespace {

Outcome solve_on(const std::string& variable, const std::string& value, const Words& more) {
  return run_on({{variable, value}}, Words{"solve", "--json", "--time-limit", "60s"} + more);
}

}  // namespace

TEST_CASE("command: solve fills a large table on the device as the host does") {
  const Folder folder;
  const std::string graph = folder / "g.json", schedule = folder / "s.json";
  REQUIRE(run_command({"generate", "pumpkin", "--branches", "16", "--length", "4", "-o", graph}).code == 0);
  const auto steps = [&](const std::string& bytes, const std::string& backend) {
    const Outcome outcome =
        solve_on("FAKE_CUDA_BYTES", bytes, {graph, "--solver", "pumpkin", "--backend", backend, "-o", schedule});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.json()["status"] == "optimal");
    return read_json(schedule)["steps"];
  };
  const std::string large = "4294967296", small = "67108864";
  const auto on_host = steps(large, "host");
  CHECK(steps(large, "cuda") == on_host);
  CHECK(steps(large, "auto") == on_host);
  // The table does not fit into the small device's memory, so the host fills it.
  CHECK(steps(small, "cuda") == on_host);
}

TEST_CASE("command: solve without a device or with a wrong backend") {
  const auto none = solve_on("FAKE_CUDA_FAILING_CALL", "cudaGetDeviceCount", {"resnet50", "--backend", "cuda"});
  CHECK(none.code == 5);
  check_says(none.err, {"--backend cuda: ", "use --backend host or auto"});
  const auto wrong = solve_on("FAKE_CUDA_BYTES", "1", {"resnet50", "--backend", "hots"});
  CHECK(wrong.code == 2);
  CHECK(contains(wrong.err, "did you mean 'host'"));
}

}  // namespace cairn::tests::solve_test
