// Tests the simulator and similar code of cuda/ on the fake runtime. The fake runtime notices if memory is freed while
// a kernel may still use it, and if a call is for a device that is not current.
#include "cairn/cuda/support/simulator.h"

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "cairn/cuda/internal/libraries.h"
#include "cairn/cuda/internal/machine.h"
#include "cairn/cuda/support/dominance.h"
#include "cairn/sim/simulator.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"
#include "cairn/tests/sim/dominance_cases.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/simulators.h"

namespace cairn::tests::simulator_test {
namespace {

/// Makes three devices, of which the last one is current. The destructor checks that the same device is still current,
/// and that no object is alive on any device.
struct ThirdOfThree {
  ThirdOfThree() {
    fake::reset();
    fake::set_device_count(3);
    REQUIRE(cudaSetDevice(2) == cudaSuccess);
  }
  ~ThirdOfThree() {
    int current = -1;
    cudaGetDevice(&current);
    CHECK(current == 2);
    CHECK(fake::alive() == "");
    CHECK(fake::faults() == "");
    cudaSetDevice(0);
  }
  ThirdOfThree(const ThirdOfThree&) = delete;
  ThirdOfThree& operator=(const ThirdOfThree&) = delete;
};

}  // namespace

TEST_CASE("the device's simulator gives the host's answers, whatever the caller's device is, as its buffers grow") {
  Random random(91);
  for (int round = 0; round < 60; ++round) {
    const ThirdOfThree devices;
    const bool values = round >= 30;
    const core::Graph graph = random_graph(
        random, {.min_nodes = 1, .max_nodes = 40, .several_outputs = values, .pinned = values && round % 3 == 0});
    const auto host = sim::host_simulator(graph, 1);
    const auto device = cuda::device_simulator(graph, round % 3);
    const sim::Generator generator{static_cast<std::uint64_t>(round), round % 2 == 0 ? 0 : 20};
    for (const std::int64_t count : {1, 3, 40, 200}) {
      const sim::ScheduleBatch batch = host->generate(generator, 5, count);
      const sim::ScheduleBatch drawn = device->generate(generator, 5, count);
      for (std::int64_t c = 0; c < count; ++c) REQUIRE(drawn.schedule(c) == batch.schedule(c));
      sim::Outcomes of_drawn;
      device->evaluate(generator, 5, count, of_drawn);
      const sim::Outcomes expected = evaluated(*host, batch);
      REQUIRE(evaluated(*device, batch) == expected);
      REQUIRE(of_drawn == expected);
      REQUIRE(device->profiles(batch).value == host->profiles(batch).value);
      REQUIRE(device->internal_profiles(batch) == host->internal_profiles(batch));
      sim::Tally tally(sim::tally_options(graph)), of_host(sim::tally_options(graph));
      host->sweep(generator, 5, count, of_host);
      device->sweep(generator, 5, count, tally);
      REQUIRE(tally == of_host);
    }
    REQUIRE(fake::used_devices() == std::set{round % 3});
  }
}

TEST_CASE("the device's bulk dominance gives the host's answers, whatever the caller's device is") {
  Random random(92);
  for (const std::int64_t count : {0, 1, 64, 200}) {
    const int ordinal = count == 64 ? 1 : 0;
    const ThirdOfThree devices;
    const std::vector<Values> profiles = population(random, count, 12);
    const Ragged ragged(profiles);
    const sim::CanonicalBatch batch = cuda::canonical_batch(ragged.values, ragged.offsets, ordinal);
    REQUIRE(batch == canonical_one_by_one(profiles));
    const auto host = sim::dominance_set(batch, 1);
    const auto device = cuda::dominance_set(batch, ordinal);
    REQUIRE(device->size() == count);
    REQUIRE(device->non_dominated() == host->non_dominated());
    if (count > 0) REQUIRE(device->dominated_by(batch[0]) == host->dominated_by(batch[0]));
    if (count > 0) REQUIRE(device->dominators_of(batch[0]) == host->dominators_of(batch[0]));
    const std::int64_t sets[] = {0, count};
    REQUIRE(cuda::merge_segments(batch, sets, ordinal) == sim::merge_segments(batch, sets));
    REQUIRE(fake::used_devices() == std::set{ordinal});
  }
}

TEST_CASE("an array waits for the kernels that use it before its memory goes") {
  const ThirdOfThree devices;
  std::optional<cuda::OnDevice> on(1);
  cuda::Machine machine;
  on.reset();
  const auto bound = machine.bind();
  auto array = machine.array<std::byte>(1000);
  machine.fill(array.data(), 1, 1000);
  array = machine.array<std::byte>(2000);
  CHECK(fake::calls()["cudaStreamSynchronize"] == 1);
}

TEST_CASE("a library's plan is timed on memory that is freed again") {
  const ThirdOfThree devices;
  const cuda::OnDevice on(0);
  const std::array<std::int64_t, 3> bytes = {100, 0, 5000};
  int kernels = 0;
  const auto accepts = [&](std::span<std::byte* const> buffers, cudaStream_t stream) {
    CHECK((buffers[0] != nullptr && buffers[1] == nullptr && buffers[2] != nullptr));
    return fake::enqueue_kernel(stream, [&] { ++kernels; }) == cudaSuccess;
  };
  const std::optional<double> ms = cuda::trial_ms(bytes, accepts);
  CHECK((ms && *ms > 0));
  CHECK(kernels > 1);
  CHECK(fake::alive() == "");
  CHECK_FALSE(cuda::trial_ms(bytes, [](auto, cudaStream_t) { return false; }));
  // A library may refuse to run by leaving a CUDA error behind, although it returns true.
  fake::fail_call("kernel", 1, cudaErrorInvalidConfiguration);
  CHECK_FALSE(cuda::trial_ms(bytes, [&](auto buffers, cudaStream_t stream) {
    accepts(buffers, stream);
    return true;
  }));
  CHECK(fake::last_error() == cudaSuccess);
  // If there is not enough memory to time a plan, trial_ms() counts the plan as usable and returns 0 for "unknown".
  const std::array<std::int64_t, 1> huge = {2 * fake::kDeviceBytes};
  CHECK(cuda::trial_ms(huge, [](auto, cudaStream_t) { return false; }) == 0);
  CHECK(fake::alive() == "");
}

}  // namespace cairn::tests::simulator_test
