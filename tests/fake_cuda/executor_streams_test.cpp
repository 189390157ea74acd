// Tests cuda::Executor with several streams on the fake CUDA runtime. This runtime runs the nodes of a CUDA graph in
// any order that the graph's edges allow.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/runtime/overlap.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/fake_cuda/executor_fixture.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/runtime/graphs.h"
#include "cairn/tests/runtime/updated_models.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests::executor_streams_test {
namespace {

using core::Graph;
using cuda::Device;
using cuda::Executor;
using runtime::Program;

Graph with_updates(const std::string& name) {
  for (const TinyModel& tiny : tiny_models()) {
    if (tiny.name != name) continue;
    models::BuildOptions options = tiny.options;
    options.optimizer = "adamw";
    options.update = {.rate = 0.01, .eps = 1e-3, .decay = 0.1, .clip = 0.5};
    return models::build_model(name, options);
  }
  throw std::out_of_range("no tiny " + name);
}

/// Returns outputs and digests after each of two steps. The second step starts from the weights that the first has
/// updated.
std::vector<Results> results_of_steps(Executor& executor) {
  std::vector<Results> steps;
  for (int i = 0; i < 2; ++i) {
    executor.run();
    steps.push_back(results_of(executor));
  }
  return steps;
}

/// Returns a graph of a source and `count` branches. Each branch reads the source, and consists of two large synthetic
/// nodes and a kept node.
Graph branches(int count) {
  // The outputs are too large for the kernel SmallSynthetic. So each node takes two launches. The first launch
  // passes hashes to the second through a separate memory.
  constexpr std::int64_t kBytes = 40'000;
  std::vector<core::Node> nodes{make_node("source", kBytes)};
  for (int b = 0; b < count; ++b) {
    const auto first = static_cast<core::NodeId>(nodes.size());
    nodes.push_back(make_node("a" + std::to_string(b), kBytes, {0}));
    nodes.push_back(make_node("b" + std::to_string(b), kBytes, {first}));
    nodes.push_back(make_node("c" + std::to_string(b), 24, {first + 1}));
    nodes.back().keep = true;
  }
  return build_graph(nodes);
}

/// Returns the program of the baseline schedule. Its plan reserves every buffer for `overlap_steps` more steps than
/// needed, so that the next steps can overlap with the buffer's last readers.
Program program_apart(Device& device, const Graph& graph, std::int64_t overlap_steps) {
  const core::Schedule schedule = core::baseline_schedule(graph);
  const core::Plan plan =
      solvers::plan_memory(graph, schedule, {.alignment = 256, .overlap_steps = overlap_steps, .limit = {.work = 0}});
  return runtime::compile(graph, schedule, plan, cuda::compile_options(device, false));
}

/// Returns the number of waits between streams in the capture of a step, without those where the streams fork and those
/// where they join at the end.
std::int64_t inner_waits(const Program& program, int streams) {
  return std::ssize(runtime::overlap(program, streams).waits);
}

}  // namespace

TEST_CASE("streams: steps of models that update weights have the same bits on 1, 2 and 3 streams, in every order") {
  for (const std::string name : {"resnet18", "unet", "gpt2"}) {
    for (const std::int64_t overlap_steps : {0, 3}) {
      INFO(name << ", " << overlap_steps << " steps");
      std::optional<std::vector<Results>> expected;
      in_every_order([&] {
        Device device;
        const Graph graph = device.with_scratch(with_updates(name), false);
        const Program program = program_apart(device, graph, overlap_steps);
        for (const int streams : expected ? std::vector{2, 3} : std::vector{1, 2, 3}) {
          CAPTURE(streams);
          CHECK((streams == 1 || inner_waits(program, streams) > 0));
          Executor executor(device, program, {.streams = streams});
          const std::vector<Results> results = results_of_steps(executor);
          if (!expected) expected = results;
          REQUIRE(results == *expected);
          CHECK(executor.measured_peak_bytes() == program.arena_bytes);
        }
      });
    }
  }
}

TEST_CASE("streams: random graphs with recomputation have the host's outputs and sinks") {
  Random random(51);
  for (int i = 0; i < 60; ++i) {
    const Graph graph = random_graph(random, any_graph(random));
    const core::Schedule schedule = random_schedule(random, graph);
    const auto streams = static_cast<int>(random.between(2, 4));
    in_every_order([&] {
      Device device;
      const Program program = device_program(device, graph, schedule);
      const Results expected = results_of(program);
      Executor executor(device, program, {.streams = streams});
      for (int run = 0; run < 2; ++run) {
        executor.run(run == 1);
        CHECK(results_of(executor) == expected);
      }
    });
  }
}

TEST_CASE("streams: each stream has its own memory for hashes, which counts beside the arena") {
  const Graph graph = branches(4);
  const Results expected = results_of(compiled(graph));
  in_every_order([&] {
    Device device;
    const std::int64_t before = fake::allocated_bytes();
    Executor executor(device, program_apart(device, graph, 20), {.streams = 4});
    // Each stream runs a branch of three nodes after the source has run, so the makespan is 4.
    CHECK(runtime::overlap(executor.program(), 4).makespan == 4);
    CHECK(fake::allocated_bytes() - before ==
          executor.program().arena_bytes + Executor::bytes_beside_arena(executor.program(), false, 4));
    CHECK(Executor::bytes_beside_arena(executor.program(), false, 4) >=
          Executor::bytes_beside_arena(executor.program(), false) + 3 * 2048);
    executor.run();
    CHECK(results_of(executor) == expected);
  });
}

TEST_CASE("streams: a step is one launch, and nothing is allocated, freed or waited for") {
  const Gpu gpu;
  Fixture f;
  Executor executor(f.device, f.program(), {.streams = 3});
  const auto before = fake::calls();
  executor.enqueue();
  auto after = fake::calls();
  for (const auto& [function, count] : before) {
    after[function] -= count;
    if (after[function] == 0) after.erase(function);
  }
  CHECK(after == std::map<std::string, std::int64_t>{{"cudaGetDevice", 1}, {"cudaGraphLaunch", 1}});
}

TEST_CASE("streams: with poison, sentinels or single launches there is one stream, and other numbers are refused") {
  const Gpu gpu;
  Fixture f;
  const Results expected = run_on_device(f.device, f.program());
  const auto waits = [&](const cuda::ExecutorOptions& options) {
    const std::int64_t before = fake::calls()["cudaStreamWaitEvent"];
    CHECK(run_on_device(f.device, f.program(kGuard), options) == expected);
    return fake::calls()["cudaStreamWaitEvent"] - before;
  };
  CHECK(waits({.streams = 1}) == 0);
  CHECK(waits({.streams = 2}) > 0);
  CHECK(waits({.poison = true, .streams = 2}) == 0);
  CHECK(waits({.sentinels = true, .streams = 2}) == 0);
  CHECK(waits({.launch = cuda::Launch::stream, .streams = 2}) == 0);
  for (const int streams : {-1, 0, runtime::kMostStreams + 1})
    CHECK_THROWS_AS(Executor(f.device, f.program(), {.streams = streams}), core::InputError);
}

TEST_CASE("streams: a step that lacks a wait has other bits in some order") {
  std::int64_t planted = 0, found = 0;
  Random random(52);
  for (int i = 0; i < 30; ++i) {
    // Every node has bytes and runs once. So every wait protects bytes that some node reads later. If a wait is left
    // out, the results must be different in some order.
    std::vector<core::Node> nodes =
        random_nodes(random, {.min_nodes = 6, .max_nodes = 10, .scratch = false, .in_place = false});
    for (core::Node& node : nodes) node.size += 8;
    const Graph graph = build_graph(nodes);
    const core::Schedule schedule = random_schedule(random, graph, 0);
    fake::reset();
    Device device;
    const Program program = device_program(device, graph, schedule);
    const Results expected = results_of(program);
    for (std::int64_t wait = 1; wait <= inner_waits(program, 2); ++wait) {
      ++planted;
      // Wait 1 is where the streams fork. The waits between streams follow it.
      fake::drop_wait(1 + wait);
      Executor executor(device, program, {.streams = 2});
      bool same = true;
      for (std::uint64_t seed = 0; seed < 500 && same; ++seed) {
        const InOrder in_order(seed == 0 ? fake::Order::early : fake::Order::random, seed);
        // Overwrites the arena. Otherwise, it would still hold the right values from the previous step.
        std::memset(executor.arena().data, 0x77, static_cast<std::size_t>(executor.arena().bytes));
        executor.run();
        same = results_of(executor) == expected;
      }
      found += same ? 0 : 1;
    }
  }
  INFO(found << " of " << planted);
  CHECK(planted > 20);
  CHECK(found == planted);
  fake::reset();
}

TEST_CASE("streams: a step that does not wait for the end of a stream is refused") {
  fake::reset();
  {
    Device device;
    const Program program = program_apart(device, branches(2), 10);
    // Drops the last wait, which comes after the wait at the fork and the inner waits.
    fake::drop_wait(inner_waits(program, 2) + 2);
    CHECK_FALSE(error_of<core::DeviceError>([&] { Executor(device, program, {.streams = 2}); }).empty());
    CHECK(contains(fake::faults(), "before its streams were joined"));
  }
  fake::reset();
}

TEST_CASE("streams: whatever call fails, the error is one line, and nothing is left") {
  std::map<std::string, std::int64_t> every_call;
  const auto use = [&] {
    Fixture f;
    const Program program = f.program();
    Executor executor(f.device, program, {.streams = 3});
    executor.run();
    every_call = fake::calls();
  };
  fake::reset();
  use();
  const auto calls = every_call;
  for (const std::string function :
       {"cudaStreamWaitEvent", "cudaEventRecord", "cudaEventCreateWithFlags", "cudaStreamCreateWithFlags", "kernel"}) {
    CHECK(calls.at(function) > 2);
    check_failures(function, calls.at(function), use);
  }
}

}  // namespace cairn::tests::executor_streams_test
