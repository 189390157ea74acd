// Compares whole programs that run on a simulated device with the host's executor.
#include <cmath>

#include "cairn/core/precision.h"
#include "cairn/runtime/executor.h"
#include "cairn/runtime/host/kernels/synthetic.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/runtime/device/device_op.h"
#include "cairn/tests/runtime/graphs.h"
#include "cairn/tests/support/device_run.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests::device_step_test {
namespace {

using core::Graph;
using core::Schedule;

constexpr std::int64_t kGuard = 64;

runtime::Program device_program(const Graph& graph, const Schedule& schedule, std::int64_t alignment,
                                std::int64_t guard_bytes = 0) {
  const core::Plan plan =
      solvers::plan_memory(graph, schedule, {.alignment = alignment, .guard_bytes = guard_bytes, .limit = {.work = 0}});
  runtime::CompileOptions options{
      .guard_bytes = guard_bytes,
      .scratch_need = [](const Graph& g, core::NodeId v) { return std::max<std::int64_t>(0, g.scratch(v)); },
      .address_alignment = 16};
  return runtime::compile(graph, schedule, plan, options);
}

/// Returns the kept outputs from the host's executor. `rounding_noise` is the relative noise that it adds to every
/// element which an op computes.
std::vector<Values> host_outputs(const Graph& graph, double rounding_noise) {
  const auto host = runtime::host_executor(device_program(graph, core::baseline_schedule(graph), 256),
                                           {.rounding_noise = rounding_noise});
  host->run();
  std::vector<Values> values;
  for (const auto& output : host->outputs()) {
    values.push_back(stored_values(output.bytes, ElementType::f32));
  }
  return values;
}

}  // namespace

TEST_CASE("device: random graphs of synthetic nodes have the host's bits, peaks and sinks", "[device]") {
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    const Graph graph = random_graph(random, any_graph(random));
    const Schedule schedule = random_schedule(random, graph);
    const std::int64_t alignment = random.chance(50) ? 16 : 256;
    const std::int64_t guard = random.chance(50) ? kGuard : 0;
    const runtime::Program program = device_program(graph, schedule, alignment, guard);
    const bool poison = random.chance(50);
    const auto host = runtime::host_executor(program, {.poison = poison, .sentinels = guard > 0});
    const runtime::StepReport report = host->run();

    FiberMachine machine(i % 10 == 0 ? Threads::reverse : Threads::one);
    HostLibrary library;
    DeviceRun device(machine, library, program, poison);
    device.step();
    CHECK(device.outputs() == outputs_of(*host));
    const auto digests = device.sink_digests();
    REQUIRE(digests.size() == host->sink_digests().size());
    for (std::size_t k = 0; k < digests.size(); ++k) CHECK(digests[k] == host->sink_digests()[k].digest);
    CHECK(device.measured_peak_bytes() == host->measured_peak_bytes());
    CHECK(device.live_peak_bytes() == report.live_peak_bytes);
    CHECK(device.broken_guards() == 0);
  }
}

TEST_CASE("device: large synthetic tensors have the host's digests", "[device]") {
  Random random(12);
  for (const std::int64_t bytes : {1, 7, 8, 9, 16384, 16385, 100'003, 3'000'001}) {
    std::vector<std::uint64_t> memory(static_cast<std::size_t>(bytes) / 8 + 1);
    for (auto& word : memory) word = static_cast<std::uint64_t>(random.below(1'000'000'007)) * 0x9E3779B97F4A7C15ULL;
    const auto* data = reinterpret_cast<const std::byte*>(memory.data());
    const std::span<const std::byte> view(data, static_cast<std::size_t>(bytes));
    std::vector<std::byte> expected(static_cast<std::size_t>(bytes) + 5), out(expected.size() + 3);
    const std::span<const std::byte> inputs[] = {view, view.first(1)};
    std::vector<std::byte> second(expected.size() / 2), second_out(second.size() + 8);
    const std::span<std::byte> outputs[] = {expected, {}, second};
    runtime::run_synthetic(3, inputs, outputs);

    FiberMachine machine(Threads::forward);
    runtime::device::HashMemory hash{};
    std::uint64_t digest = 0;
    runtime::device::synthetic_digest(machine, {data, bytes}, &hash, &digest);
    CHECK(digest == runtime::synthetic_digest(view));
    const runtime::device::Bytes device_inputs[] = {{data, bytes}, {data, 1}};
    const auto second_bytes = static_cast<std::int64_t>(second.size());
    const runtime::device::OutputBytes device_outputs[] = {
        {out.data(), bytes + 5}, {nullptr, 0}, {second_out.data(), second_bytes}};
    runtime::device::run_synthetic(machine, 3, device_inputs, device_outputs, &hash);
    CHECK(std::memcmp(out.data(), expected.data(), expected.size()) == 0);
    CHECK(std::memcmp(second_out.data(), second.data(), second.size()) == 0);
  }
}

TEST_CASE("device: an overwritten guard is found", "[device]") {
  const Perceptron p = perceptron();
  FiberMachine machine(Threads::one);
  HostLibrary library;
  const Graph graph = runtime::device::with_scratch(machine, library, p.graph, false);
  const runtime::Program program = device_program(graph, core::baseline_schedule(graph), 256, kGuard);
  DeviceRun whole(machine, library, program);
  whole.step();
  CHECK(whole.broken_guards() == 0);
  runtime::Program broken = program;
  output_of(broken, 1).offset += 128;  // the output of relu now begins in the guard behind its buffer
  output_of(broken, 1).reserved -= 128;
  DeviceRun shifted(machine, library, broken);
  shifted.step();
  CHECK(shifted.broken_guards() > 0);
}

TEST_CASE("device: ops of several outputs have the bits of those that make them one by one", "[device]") {
  Random random(14);
  FiberMachine machine(Threads::one);
  HostLibrary library;
  for (const core::Precision precision : {core::Precision::fp32, core::Precision::bf16}) {
    const auto stored = [&](bool bundled) {
      return runtime::device::with_scratch(machine, library, core::with_precision(pooled_norms(bundled), precision),
                                           false);
    };
    const Graph single = stored(false), bundled = stored(true);
    DeviceRun expected(machine, library, device_program(single, core::baseline_schedule(single), 256), true);
    expected.step();
    const auto outputs = expected.outputs();
    for (int i = 0; i < 10; ++i) {
      const Schedule schedule = i == 0 ? core::baseline_schedule(bundled) : random_schedule(random, bundled);
      DeviceRun run(machine, library, device_program(bundled, schedule, 256, kGuard), true);
      run.step();
      const auto actual = run.outputs();
      REQUIRE(actual.size() == outputs.size());
      for (std::size_t k = 0; k < outputs.size(); ++k) CHECK(actual[k].second == outputs[k].second);
      CHECK(run.broken_guards() == 0);
    }
  }
}

// The tolerance is found by an experiment: the host computes every model a second time with noise on every value. The
// device's outputs may differ from the host's by kFactor times as much as the noisy ones do.
TEST_CASE("device: every model agrees with the host, and recomputation does not change a bit", "[device]") {
  constexpr double kFactor = 16, kDecidable = 0.5;
  Random random(13);
  for (const TinyModel& tiny : tiny_models()) {
    INFO("model " << tiny.name);
    FiberMachine machine(Threads::one);
    HostLibrary library(tiny.name == "unet");
    const Graph graph = tiny.build();
    const auto expected = host_outputs(graph, 0);
    for (const core::Precision precision : {core::Precision::fp32, core::Precision::bf16}) {
      INFO("precision " << core::to_string(precision));
      const double rounding = precision == core::Precision::fp32 ? 0x1p-19 : 0x1p-8;
      const auto disturbed = host_outputs(graph, rounding);
      const Graph stored =
          runtime::device::with_scratch(machine, library, core::with_precision(graph, precision), false);
      DeviceRun baseline(machine, library, device_program(stored, core::baseline_schedule(stored), 256), true);
      baseline.step();
      const auto outputs = baseline.outputs();
      REQUIRE(outputs.size() == expected.size());
      std::size_t decided = 0;
      for (std::size_t k = 0; k < outputs.size(); ++k) {
        INFO("output " << graph.name(outputs[k].first.node));
        const Values values = stored_values(outputs[k].second, stored.op(outputs[k].first.node)->type);
        const double error = relative_error(values, expected[k]);
        const double allowed = kFactor * (rounding + relative_error(disturbed[k], expected[k]));
        CHECK(!std::isnan(error));
        if (allowed >= kDecidable) continue;
        ++decided;
        CHECK(error <= allowed);
      }
      if (precision == core::Precision::fp32 && tiny.name.rfind("resnet", 0) != 0) CHECK(decided * 2 > outputs.size());

      DeviceRun again(machine, library, device_program(stored, random_schedule(random, stored), 256, kGuard), true);
      again.step();
      CHECK(again.outputs() == outputs);
      CHECK(again.broken_guards() == 0);
    }
  }
}

}  // namespace cairn::tests::device_step_test
