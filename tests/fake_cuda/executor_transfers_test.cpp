// Tests cuda::Executor with schedules that have transfers, on the fake CUDA runtime. This runtime can run copies as
// early or as late as the recorded events allow.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/fake_cuda/executor_fixture.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/runtime/graphs.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/transfers.h"

namespace cairn::tests::executor_transfers_test {
namespace {

using core::Graph;
using core::Schedule;
using cuda::Device;
using cuda::Executor;
using cuda::ExecutorOptions;
using cuda::Launch;
using runtime::Program;

/// Returns how often a stream waits for an event in one step of the program.
std::int64_t waits_of_a_step(Device& device, const Program& program) {
  Executor executor(device, program, {.launch = Launch::stream});
  const std::int64_t before = fake::calls()["cudaStreamWaitEvent"];
  executor.run();
  return fake::calls()["cudaStreamWaitEvent"] - before;
}

void check_execution(Device& device, const Program& program, const ExecutorOptions& options, const Results& expected) {
  Executor executor(device, program, options);
  // Two steps are pending at once. The copies of the second step must not begin before the first step has ended.
  executor.enqueue();
  executor.enqueue();
  executor.wait();
  REQUIRE(results_of(executor) == expected);
  executor.run(true);
  REQUIRE(results_of(executor) == expected);
  CHECK(executor.measured_peak_bytes() == program.arena_bytes);
  CHECK(executor.measured_host_peak_bytes() == program.host_arena_bytes);
}

/// Executes a schedule in every order in which pending work can run. In each order, it tries both kinds of launch,
/// poison, a single stream for copies (half duplex), and guard bytes.
void check_in_every_order(const Graph& given, const Schedule& schedule) {
  in_every_order([&] {
    Device device;
    const Graph graph = device.with_scratch(given, false);
    const Program program = device_program(device, graph, schedule);
    const Results expected = run_on_device(device, device_program(device, graph));
    for (const Launch launch : kLaunches) {
      check_execution(device, program, {.launch = launch}, expected);
      check_execution(device, program, {.poison = true, .launch = launch}, expected);
    }
    check_execution(device, program, {.poison = true, .half_duplex = true}, expected);
    const Program guarded = device_program(device, graph, schedule, 256);
    check_execution(device, guarded, {.poison = true, .sentinels = true}, expected);
  });
}

/// Leaves out one wait of a step, runs the step in several orders of work, and returns whether it throws an error or
/// has results other than `expected`. `waits` is the number of waits in a step, and `dropped` says which one is left
/// out, where 1 is the first and 0 leaves out none.
bool fails(Device& device, const Program& program, std::int64_t waits, std::int64_t dropped, const Results& expected) {
  if (dropped > 0)
    // The executor runs its first step without a capture. That step has `waits` waits of its own, which come first.
    fake::drop_wait(waits + dropped);
  try {
    Executor executor(device, program, {.poison = true});
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const InOrder in_order(seed == 0 ? fake::Order::early : fake::Order::random, seed);
      executor.run();
      if (results_of(executor) != expected) return true;
    }
  } catch (const core::DeviceError&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("device transfers: models have the bits of the baseline and the planned bytes, in every order") {
  Random random(71);
  for (const std::string model : {"resnet18", "gpt2", "unet", "transformer"}) {
    INFO(model);
    const Graph graph = tiny_model(model);
    const Schedule schedule = with_transfers(random, graph, core::baseline_schedule(graph), 30);
    REQUIRE(core::evaluate(graph, schedule).valid());
    check_in_every_order(graph, schedule);
  }
}

TEST_CASE("device transfers: random graphs have the bits of the baseline and the planned bytes, in every order") {
  Random random(72);
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    const Graph graph = random_graph(random, any_graph(random));
    check_in_every_order(graph, with_transfers(random, graph, random_schedule(random, graph), 60));
  }
}

TEST_CASE("device transfers: a step that lacks any wait fails or has other bits in some order") {
  fake::reset();
  for (const Schedule& schedule : {relay_once(), relay_touching(), relay_twice()}) {
    Device device;
    const Program program = device_program(device, relay(), schedule);
    const Results expected = run_on_device(device, device_program(device, relay()));
    const std::int64_t waits = waits_of_a_step(device, program);
    CHECK(waits >= 4);
    CHECK_FALSE(fails(device, program, waits, 0, expected));
    for (std::int64_t dropped = 1; dropped <= waits; ++dropped) {
      INFO("evict from " << schedule.transfers.evicts[0].start << ", wait " << dropped << " of " << waits);
      CHECK(fails(device, program, waits, dropped, expected));
    }
  }
  fake::reset();
}

TEST_CASE("device transfers: of the waits of random schedules, most are needed for the bits") {
  std::int64_t planted = 0, found = 0;
  Random random(73);
  fake::reset();
  for (int i = 0; i < 25; ++i) {
    std::vector<core::Node> nodes =
        random_nodes(random, {.min_nodes = 6, .max_nodes = 10, .scratch = false, .in_place = false});
    for (core::Node& node : nodes) node.size += 8;
    const Graph graph = build_graph(nodes);
    const Schedule schedule = with_transfers(random, graph, random_schedule(random, graph, 0), 60);
    Device device;
    const Program program = device_program(device, graph, schedule);
    const Results expected = run_on_device(device, device_program(device, graph));
    const std::int64_t waits = waits_of_a_step(device, program);
    for (std::int64_t dropped = 1; dropped <= waits; ++dropped) {
      ++planted;
      found += fails(device, program, waits, dropped, expected) ? 1 : 0;
    }
  }
  fake::reset();
  INFO(found << " of " << planted);
  CHECK(planted > 100);
  CHECK(2 * found > planted);
}

TEST_CASE("device transfers: a capture that ends before a copy was joined is refused") {
  fake::reset();
  {
    Device device;
    const Program program = device_program(device, relay(), relay_once());
    const std::int64_t waits = waits_of_a_step(device, program);
    fake::drop_wait(2 * waits);  // drops the last wait, which is for the fetch
    CHECK_FALSE(error_of<core::DeviceError>([&] { Executor(device, program); }).empty());
    CHECK(contains(fake::faults(), "before its streams were joined"));
  }
  fake::reset();
}

TEST_CASE("device transfers: bytes on the host that are freed before the last fetch change the bits with poison") {
  const Gpu gpu;
  Device device;
  Program program = device_program(device, relay(), relay_twice());
  const Results expected = run_on_device(device, device_program(device, relay()));
  CHECK_FALSE(fails(device, program, 0, 0, expected));
  program.copies[1].frees_host = true;
  CHECK(fails(device, program, 0, 0, expected));
}

TEST_CASE("device transfers: a step makes, allocates and frees nothing") {
  const Gpu gpu;
  Device device;
  const Program program = device_program(device, relay(), relay_twice());
  for (const Launch launch : kLaunches) {
    Executor executor(device, program, {.launch = launch});
    auto before = fake::calls();
    executor.enqueue();
    for (const auto& [function, count] : fake::calls()) {
      const bool makes = function.find("Create") != std::string::npos || function.find("Malloc") != std::string::npos;
      if (makes || function.find("Synchronize") != std::string::npos) CHECK(count == before[function]);
    }
    if (launch == Launch::graph) CHECK(fake::calls()["cudaMemcpyAsync"] == before["cudaMemcpyAsync"]);
  }
}

TEST_CASE("device transfers: several streams are refused") {
  const Gpu gpu;
  Device device;
  const Program program = device_program(device, relay(), relay_once());
  CHECK(contains(error_of([&] { Executor(device, program, {.streams = 2}); }), "cannot run on several streams"));
}

TEST_CASE("device transfers: whatever call fails, the error is one line, and nothing is left") {
  std::map<std::string, std::int64_t> calls;
  const auto use = [&] {
    Device device;
    Executor executor(device, device_program(device, relay(), relay_twice()), {.poison = true});
    executor.run();
    calls = fake::calls();
  };
  fake::reset();
  use();
  const auto every_call = calls;
  for (const std::string function : {"cudaStreamWaitEvent", "cudaEventRecord", "cudaEventCreateWithFlags",
                                     "cudaStreamCreateWithFlags", "cudaMemcpyAsync", "cudaMallocHost", "kernel"}) {
    CHECK(every_call.at(function) > 0);
    check_failures(function, every_call.at(function), use);
  }
}

}  // namespace cairn::tests::executor_transfers_test
