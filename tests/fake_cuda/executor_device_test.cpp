// Tests executors that are moved, that use one of several devices, or that name a device which does not exist.
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/cuda/internal/runtime.h"
#include "cairn/cuda/support/executor.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/fake_cuda/executor_fixture.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"
#include "cairn/tests/support/errors.h"

namespace cairn::tests::executor_device_test {

using core::Graph;
using cuda::Device;
using cuda::Executor;
using cuda::Launch;
using runtime::Program;

TEST_CASE("executors can be moved and replaced, live side by side, and outlast a move of their device") {
  const Gpu gpu;
  Fixture f;
  const Results expected = run_on_device(f.device, f.program());
  Executor first(f.device, f.program());
  Executor second(std::move(first));
  second.enqueue();
  CHECK(results_of(second) == expected);
  const std::string one = fake::alive();
  second = Executor(f.device, f.program(), {.launch = Launch::graph});
  CHECK(fake::alive() == one);
  second.run(true);
  CHECK(results_of(second) == expected);

  const Graph other = build_graph({make_node("a", 1000), make_node("b", 70, {0})});
  Executor third(f.device, device_program(f.device, other));
  second.enqueue();
  third.enqueue();
  const Device moved = std::move(f.device);
  CHECK(results_of(second) == expected);
  second.run(true);
  CHECK(results_of(second) == expected);
  CHECK(results_of(third).sinks == results_of(third.program()).sinks);
}

TEST_CASE("an executor leaves the caller's current device as it was, after a failure too") {
  const Gpu gpu;
  fake::set_device_count(3);
  const auto current = [] {
    int device = -1;
    cudaGetDevice(&device);
    return device;
  };
  for (const Launch launch : kLaunches) {
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    std::optional<Fixture> f(std::in_place);
    const Results expected = run_on_device(f->device, f->program());
    REQUIRE(cudaSetDevice(2) == cudaSuccess);
    std::optional<Executor> executor(std::in_place, f->device, f->program(kGuard),
                                     cuda::ExecutorOptions{.sentinels = true, .launch = launch});
    CHECK(current() == 2);
    executor->run(true);
    executor->enqueue();
    CHECK(current() == 2);
    CHECK(results_of(*executor) == expected);
    CHECK(f->device.free_bytes() > 0);
    f->device.with_scratch(f->p.graph, true);
    const std::string function = launch == Launch::graph ? "cudaGraphLaunch" : "kernel";
    fake::fail_call(function, 1);
    CHECK_FALSE(error_of<core::DeviceError>([&] { executor->enqueue(); }).empty());
    CHECK(current() == 2);
    fake::fail_call(function, 0);
    executor->enqueue();  // this work is still pending while the executor is destroyed
    executor.reset();
    f.reset();
    CHECK(current() == 2);
    CHECK(cuda::probe().available);
    CHECK(current() == 2);
  }
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("an executor and its device use the device that was asked for, and none other") {
  const Gpu gpu;
  fake::set_device_count(3);
  const Results expected = [] {
    Fixture first;
    return run_on_device(first.device, first.program());
  }();
  for (const int ordinal : {1, 2}) {
    for (const Launch launch : kLaunches) {
      fake::reset();
      fake::set_device_count(3);
      Fixture f(ordinal);
      CHECK(f.device.info().ordinal == ordinal);
      Executor executor(f.device, f.program(kGuard), {.poison = true, .sentinels = true, .launch = launch});
      executor.run(true);
      executor.measured_peak_bytes();
      CHECK(results_of(executor) == expected);
      Executor moved = std::move(executor);
      Device device = std::move(f.device);
      CHECK(fake::used_devices() == std::set{ordinal});
    }
  }
}

TEST_CASE("a device that is not there is named, with the numbers of those that are") {
  const Gpu gpu;
  CHECK(cuda::probe(1).reason == "there is no device 1; the only visible one has the number 0");
  fake::set_device_count(3);
  CHECK(cuda::device_count() == 3);
  CHECK(cuda::probe(2).available);
  for (const int ordinal : {-1, 3})
    CHECK(error_of<core::DeviceError>([&] { Device device({.ordinal = ordinal}); }) ==
          "there is no device " + std::to_string(ordinal) + "; the visible ones have the numbers 0 to 2");
}

TEST_CASE("graphs without memory, without nodes, and with empty outputs run") {
  const Gpu gpu;
  Device device;
  std::vector<core::Node> nodes = {make_node("empty"), make_node("reader", 16, {0}), make_node("sink", 0, {1})};
  nodes[1].keep = nodes[2].keep = true;
  for (const Graph& graph : {build_graph({}), build_graph({make_node("only")}), build_graph(nodes)}) {
    const Program program = device_program(device, graph);
    for (const Launch launch : kLaunches) {
      Executor executor(device, program, {.poison = true, .launch = launch});
      const runtime::StepReport report = executor.run(true);
      CHECK(executor.measured_peak_bytes() == program.arena_bytes);
      CHECK(report.op_seconds.size() == program.instructions.size());
      CHECK(results_of(executor) == results_of(program));
    }
  }
}

TEST_CASE("without a device the reason is the probe's") {
  const Gpu gpu;
  fake::set_available(false);
  CHECK(error_of<core::DeviceError>([] { Device device; }) == cuda::probe().reason);
}

}  // namespace cairn::tests::executor_device_test
