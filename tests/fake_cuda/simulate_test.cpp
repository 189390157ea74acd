// `cairn simulate --backend cuda`: the device path, on a fake device here, gives the host's answer.
#include <cstdlib>

#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace cairn::tests {
namespace {

using Words = std::vector<std::string>;

test::Outcome simulate_on(const std::string& variable, const std::string& value, const Words& more,
                          const std::string& input = "") {
  Words words{"simulate", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  setenv(variable.c_str(), value.c_str(), 1);
  test::Outcome outcome = test::Child(words, input, CAIRN_BINARY_DIR "/tests/cairn_fake_cuda").wait();
  unsetenv(variable.c_str());
  return outcome;
}

/// What does not depend on who computed it.
nlohmann::json answer(const test::Outcome& outcome) {
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  nlohmann::json json = outcome.json();
  for (const char* key : {"backend", "device", "seconds", "candidates_per_second"}) json.erase(key);
  return json;
}

}  // namespace

TEST_CASE("command: simulate on a device gives the host's tally") {
  const std::string memory = "FAKE_CUDA_BYTES", plenty = "4294967296";
  for (const std::string recompute : {"0", "9"}) {
    const Words words{"mlp-mixer", "--random", "3000", "--seed", "3", "--recompute", recompute, "--backend"};
    const auto with = [&](const std::string& backend) {
      Words all = words;
      all.push_back(backend);
      return simulate_on(memory, plenty, all);
    };
    const test::Outcome on_device = with("cuda");
    CHECK(on_device.json()["backend"] == "cuda");
    CHECK(with("auto").json()["backend"] == "cuda");
    CHECK(answer(on_device) == answer(with("host")));
  }
}

TEST_CASE("command: simulate without a device") {
  const auto none =
      simulate_on("FAKE_CUDA_FAILING_CALL", "cudaGetDeviceCount", {"mlp-mixer", "--random", "10", "--backend", "cuda"});
  CHECK(none.code == 5);
  CHECK(none.err.find("--backend cuda: ") != std::string::npos);
}

}  // namespace cairn::tests
