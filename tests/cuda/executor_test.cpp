// Tests the executor on a real device. The tests in tests/fake_cuda/ run without a device, and also test every failure.
#include "cairn/cuda/support/executor.h"

#include <cuda_runtime_api.h>

#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/precision.h"
#include "cairn/core/schedule.h"
#include "cairn/core/support/bf16.h"
#include "cairn/cuda/internal/runtime.h"
#include "cairn/runtime/executor.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cuda/no_device.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/runtime/updated_models.h"
#include "cairn/tests/support/device_program.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/outputs.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests::executor_test {
namespace {

using core::Graph;
using core::Schedule;
void check_synthetic(int graphs) {
  cuda::Device device;
  Random random(21);
  for (int i = 0; i < graphs; ++i) {
    const Graph graph = random_graph(random, any_graph(random));
    const Schedule schedule = random_schedule(random, graph);
    const std::int64_t guard = random.chance(50) ? 256 : 0;
    const bool poison = random.chance(50);
    const runtime::Program program = device_program(device, graph, schedule, guard);
    const auto host = runtime::host_executor(program, {.poison = poison, .sentinels = guard > 0});
    const runtime::StepReport expected = host->run();
    cuda::Executor executor(device, program, {.poison = poison, .sentinels = guard > 0});
    const runtime::StepReport report = executor.run();
    CHECK(outputs_of(executor) == outputs_of(*host));
    CHECK(executor.sink_digests() == host->sink_digests());
    CHECK(executor.measured_peak_bytes() == host->measured_peak_bytes());
    CHECK(report.live_peak_bytes == expected.live_peak_bytes);
  }
}

}  // namespace

TEST_CASE("synthetic nodes have the host's bits and peaks on the device, on a few graphs", "[sanitize]") {
  if (no_device()) return;
  check_synthetic(8);
}

TEST_CASE("synthetic nodes have the host's bits and peaks on the device") {
  if (no_device()) return;
  check_synthetic(300);
}

TEST_CASE("the device converts between bf16 weights, their fp32 copies and values in its memory", "[sanitize]") {
  if (no_device()) return;
  cuda::Device device;
  const Graph graph = device.with_scratch(gpt2_with_updates(core::Precision::bf16), false);
  cuda::Executor executor(device, device_program(device, graph));
  const auto [weight, master] = weight_with_master(graph);
  const auto count = static_cast<std::size_t>(core::element_count(weight.shape));
  const cuda::DeviceMemory memory = cuda::device_memory(static_cast<std::int64_t>(count * sizeof(float)));
  const std::vector<float> zeros(count, 0.0F);
  for (const core::ElementType type : {core::ElementType::f32, core::ElementType::bf16}) {
    const float value = type == core::ElementType::f32 ? 1.001F : 2.5F;
    executor.set(weight.name, std::vector<float>(count, value));
    executor.get(weight.name, {memory.get(), type, weight.shape, true});
    executor.set(weight.name, zeros);
    executor.set(weight.name, {memory.get(), type, weight.shape, true});
    std::vector<float> exact(count);
    executor.get(master, exact);
    CHECK(exact == std::vector<float>(count, value));
    std::vector<core::Bf16> stored(count);
    executor.get(weight.name, {stored.data(), core::ElementType::bf16, weight.shape});
    CHECK(stored == std::vector<core::Bf16>(count, core::Bf16(value)));
  }
}

TEST_CASE("recomputation does not change a bit of any model, in any precision, and measured is planned") {
  if (no_device()) return;
  cuda::Device device;
  Random random(22);
  for (const TinyModel& tiny : tiny_models()) {
    for (const core::Precision precision : {core::Precision::fp32, core::Precision::bf16}) {
      INFO(tiny.name << " " << core::to_string(precision));
      const Graph graph = device.with_scratch(core::with_precision(tiny.build(), precision), false);
      cuda::Executor baseline(device, device_program(device, graph));
      baseline.run();
      CHECK(baseline.measured_peak_bytes() == baseline.program().arena_bytes);
      const Outputs expected = outputs_of(baseline);
      for (int repeat = 0; repeat < 5; ++repeat) {
        baseline.run();
        CHECK(outputs_of(baseline) == expected);
      }
      const Schedule schedule = random_schedule(random, graph);
      cuda::Executor again(device, device_program(device, graph, schedule, 256), {.poison = true, .sentinels = true});
      again.run();
      CHECK(outputs_of(again) == expected);
      cuda::Executor launched(device, device_program(device, graph, schedule), {.launch = cuda::Launch::stream});
      CHECK(launched.run(true).op_seconds.size() == schedule.steps.size());
      CHECK(outputs_of(launched) == expected);
    }
  }
}

TEST_CASE("the caller's stream and memory serve, and a step allocates nothing") {
  if (no_device()) return;
  cuda::Device device;
  const Graph graph = device.with_scratch(tiny_models().back().build(), false);
  const runtime::Program program = device_program(device, graph);
  cuda::Executor own(device, program);
  own.run();
  cudaStream_t stream = nullptr;
  void* arena = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaMalloc(&arena, static_cast<std::size_t>(program.arena_bytes)) == cudaSuccess);
  {
    cuda::ExecutorOptions options{.stream = stream, .arena = {static_cast<std::byte*>(arena), program.arena_bytes}};
    cuda::Executor given(device, program, options);
    given.run();
    const std::int64_t before = device.free_bytes();
    for (int i = 0; i < 20; ++i) given.enqueue();
    CHECK(outputs_of(given) == outputs_of(own));
    CHECK(device.free_bytes() == before);
  }
  CHECK(cudaFree(arena) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("more than the device has is refused, with the budget that would fit") {
  if (no_device()) return;
  cuda::Device device;
  core::Node node = make_node("huge", device.info().total_bytes * 2);
  node.keep = true;
  const Graph graph = build_graph({node});
  CHECK(contains(error_of<core::DeviceError>([&] { cuda::Executor(device, device_program(device, graph)); }),
                 "a budget of "));
}

}  // namespace cairn::tests::executor_test
