// Tests that `cairn simulate --backend cuda` on a fake device gives the same answer as `cairn simulate` on the host.
#include "cairn/tests/catch.h"
#include "cairn/tests/fake_cuda/fake_command.h"

namespace cairn::tests::simulate_test {
namespace {

/// Returns the answer without the keys that depend on the backend or on elapsed time.
Json answer(Json json) {
  for (const char* key : {"backend", "device", "seconds", "candidates_per_second"}) json.erase(key);
  return json;
}

}  // namespace

TEST_CASE("command: simulate on a device gives the host's tally") {
  for (const std::string recompute : {"0", "9"}) {
    const Words words{"simulate", "mlp-mixer", "--random", "3000", "--seed", "3", "--recompute", recompute};
    const auto with = [&](const std::string& backend) {
      return json_on({{"FAKE_CUDA_BYTES", "4294967296"}}, words + Words{"--backend", backend});
    };
    const Json on_device = with("cuda");
    CHECK(on_device["backend"] == "cuda");
    CHECK(with("auto")["backend"] == "cuda");
    CHECK(answer(on_device) == answer(with("host")));
  }
}

TEST_CASE("command: --device names one of several devices") {
  const Device three{{"FAKE_CUDA_DEVICES", "3"}};
  const Words words{"simulate", "--json", "mlp-mixer", "--random", "10"};
  for (const std::string backend : {"cuda", "auto"})
    CHECK(run_on(three, words + Words{"--backend", backend, "--device", "2"}).json()["backend"] == "cuda");
  CHECK(run_on(three, words + Words{"--backend", "cuda:1"}).json()["backend"] == "cuda");
  CHECK(run_on(three, words + Words{"--device", "3"}).json()["backend"] == "host");
  const auto check_refused = [&](const Words& more, int code, const std::string& why) {
    const Outcome outcome = run_on(three, words + more);
    CHECK(outcome.code == code);
    CHECK(contains(outcome.err, why));
  };
  check_refused({"--backend", "cuda", "--device", "3"}, 5,
                "there is no device 3; the visible ones have the numbers 0 to 2");
  check_refused({"--backend", "host", "--device", "1"}, 2, "--device 1 needs --backend cuda or auto");
  check_refused({"--backend", "cuda:1", "--device", "2"}, 2,
                "--backend 'cuda:1' names a device already; drop --device 2");
  for (const std::string name : {"cuda:", "cuda:x", "cuda:-1", "cuda:1x", "gpu:1"})
    CHECK(run_on(three, words + Words{"--backend", name}).code == 2);
  json_on(three, {"solve", "resnet50", "--solver", "order", "-t", "1s", "--backend", "cuda", "--device", "1"});
}

TEST_CASE("command: simulate without a device") {
  const auto none = run_on({{"FAKE_CUDA_FAILING_CALL", "cudaGetDeviceCount"}},
                           {"simulate", "--json", "mlp-mixer", "--random", "10", "--backend", "cuda"});
  CHECK(none.code == 5);
  CHECK(contains(none.err, "--backend cuda: "));
}

}  // namespace cairn::tests::simulate_test
