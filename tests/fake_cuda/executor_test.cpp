// Tests cuda::Executor, built from unchanged sources, on the fake CUDA runtime. Compares it with the host's executor.
#include "cairn/cuda/support/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "cairn/core/error.h"
#include "cairn/core/precision.h"
#include "cairn/core/profile.h"
#include "cairn/cuda/internal/runtime.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/solvers/registry.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/fake_cuda/executor_fixture.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/runtime/graphs.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests::executor_test {
namespace {

using core::Graph;
using core::NodeId;
using core::Schedule;
using cuda::Device;
using cuda::Executor;
using cuda::Launch;
using runtime::Program;

/// Returns how often `body` calls each function of the CUDA runtime.
template <class F>
std::map<std::string, std::int64_t> calls_of(const F& body) {
  const auto before = fake::calls();
  body();
  std::map<std::string, std::int64_t> calls;
  for (const auto& [function, count] : fake::calls()) {
    const auto known = before.find(function);
    const std::int64_t more = count - (known == before.end() ? 0 : known->second);
    if (more != 0) calls[function] = more;
  }
  return calls;
}

Values floats_of(const Bytes& bytes) {
  const std::vector<float> values = as_floats(bytes);
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("random graphs on the device: the host's outputs, sinks and peaks, which are those of the plan") {
  const Gpu gpu;
  Device device;
  Random random(21);
  for (int i = 0; i < 400; ++i) {
    const Graph graph = random_graph(random, any_graph(random));
    const Schedule schedule = random_schedule(random, graph);
    const std::int64_t guard = random.chance(50) ? kGuard : 0;
    const Program program = device_program(device, graph, schedule, guard, random.chance(50) ? 16 : 256);
    const bool poison = random.chance(50);
    const auto host = runtime::host_executor(program, {.poison = poison, .sentinels = guard > 0});
    const runtime::StepReport expected = host->run();

    Executor executor(device, program, {.poison = poison, .sentinels = guard > 0, .launch = random.pick(kLaunches)});
    for (int run = 0; run < 2; ++run) {
      const runtime::StepReport report = executor.run(run == 1);
      CHECK(executor.measured_peak_bytes() == host->measured_peak_bytes());
      CHECK(report.live_peak_bytes == expected.live_peak_bytes);
      CHECK(report.op_seconds.size() == (run == 1 ? schedule.steps.size() : 0));
      CHECK(results_of(executor) == results_of(*host));
    }
    if (guard == 0) {
      CHECK(host->measured_peak_bytes() == program.arena_bytes);
      const core::Plan plan =
          solvers::plan_memory(graph, schedule, {.alignment = program.alignment, .limit = {.work = 0}});
      CHECK(expected.live_peak_bytes == plan.lower_bound);
    }
  }
}

TEST_CASE("models on the device: close to the host, and the same bits for every schedule, in bf16 too") {
  for (const std::string name : {"ffn", "resnet18", "unet", "gpt2", "mlp-mixer"}) {
    for (const bool cudnn : {false, true}) {
      if (cudnn && name != "unet") continue;
      INFO("model " << name);
      const Gpu gpu;
      fake::set_cudnn(cudnn);
      Device device;
      const Graph graph = tiny_model(name);
      const Results host = results_of(compiled(graph));
      for (const core::Precision precision : {core::Precision::fp32, core::Precision::bf16}) {
        const Graph stored = device.with_scratch(core::with_precision(graph, precision), false);
        const Schedule baseline = core::baseline_schedule(stored);
        const Results expected = run_on_device(device, device_program(device, stored, baseline), {.poison = true});
        REQUIRE(expected.outputs.size() == host.outputs.size());
        for (std::size_t k = 0; k < host.outputs.size() && precision == core::Precision::fp32; ++k) {
          INFO("output " << stored.name(expected.outputs[k].first.node));
          check_close(floats_of(expected.outputs[k].second), floats_of(host.outputs[k].second), 1e-4);
        }
        const std::int64_t peak = core::evaluate(stored, baseline).peak;
        for (const solvers::SolverInfo& solver : solvers::registry()) {
          if (solver.graphs != "any" || !solver.why_missing().empty()) continue;
          solvers::SolveOptions options{.budget = (peak + core::peak_lower_bound(stored)) / 2};
          options.limit.work = 20'000;
          const Schedule schedule = solver.solve(stored, options).schedule;
          if (schedule.steps.empty() || schedule == baseline) continue;
          INFO("solver " << solver.name);
          CHECK(run_on_device(device, device_program(device, stored, schedule), {.poison = true}) == expected);
        }
        const Schedule any = [&] {
          Random random(5);
          return random_schedule(random, stored, 20);
        }();
        CHECK(run_on_device(device, device_program(device, stored, any, kGuard),
                            {.poison = true, .sentinels = true, .launch = Launch::stream}) == expected);
      }
    }
  }
}

TEST_CASE("ops of several outputs on the device: the bits of those that make them one by one, for every schedule") {
  const Gpu gpu;
  Device device;
  Random random(23);
  for (const core::Precision precision : {core::Precision::fp32, core::Precision::bf16}) {
    const Graph single = device.with_scratch(core::with_precision(pooled_norms(false), precision), false);
    const Graph bundled = device.with_scratch(core::with_precision(pooled_norms(true), precision), false);
    const Results expected = run_on_device(device, device_program(device, single), {.poison = true});
    for (int i = 0; i < 10; ++i) {
      const Schedule schedule = i == 0 ? core::baseline_schedule(bundled) : random_schedule(random, bundled);
      const Results results = run_on_device(device, device_program(device, bundled, schedule, kGuard),
                                            {.poison = true, .sentinels = true, .launch = random.pick(kLaunches)});
      REQUIRE(results.outputs.size() == expected.outputs.size());
      for (std::size_t k = 0; k < results.outputs.size(); ++k) {
        CHECK(results.outputs[k].second == expected.outputs[k].second);
      }
    }
  }
}

TEST_CASE("a convolution runs in the way for which its node has scratch") {
  const Gpu gpu;
  fake::set_cudnn(true);
  Device device;
  const Graph usual = device.with_scratch(tiny_model("unet"), false);
  std::vector<std::int64_t> scratch;
  std::int64_t several = 0;
  for (NodeId v = 0; v < usual.node_count(); ++v) {
    scratch.push_back(usual.scratch(v));
    if (usual.op(v) == nullptr || usual.scratch(v) < 0) continue;
    const std::vector<runtime::ScratchVariant> variants = device.scratch_variants(usual, v, false);
    REQUIRE(!variants.empty());
    REQUIRE(std::ranges::count_if(variants, &runtime::ScratchVariant::usual) == 1);
    for (std::size_t i = 0; i < variants.size(); ++i) {
      if (variants[i].usual) CHECK(variants[i].scratch == usual.scratch(v));
      if (i > 0) CHECK(variants[i].scratch > variants[i - 1].scratch);
      if (i > 0) CHECK(variants[i].ms < variants[i - 1].ms);
    }
    several += variants.size() > 1 ? 1 : 0;
    scratch[static_cast<std::size_t>(v)] = variants.back().scratch;
  }
  CHECK(several > 5);
  // A fake convolution overwrites its whole workspace. So the measured peak shows which variant of the convolution has
  // run.
  const auto measured_peak = [&](const Graph& graph) {
    const Program program = device_program(device, graph);
    Executor executor(device, program);
    executor.run();
    const std::int64_t measured = executor.measured_peak_bytes();
    CHECK(measured == program.arena_bytes);
    return measured;
  };
  CHECK(measured_peak(usual.with_scratch(scratch)) > measured_peak(usual));
}

TEST_CASE("with_scratch gives what the kernels take, again and again, and leaves in-place nodes alone") {
  for (const bool cudnn : {false, true}) {
    const Gpu gpu;
    fake::set_cudnn(cudnn);
    Device device;
    CHECK(contains(device.convolutions(), cudnn ? "cuDNN" : "im2col"));
    for (const TinyModel& tiny : tiny_models()) {
      INFO("model " << tiny.name);
      for (const core::Precision precision : {core::Precision::fp32, core::Precision::bf16}) {
        const Graph graph = core::with_precision(tiny.build(), precision);
        const Graph once = device.with_scratch(graph, false);
        CHECK(device.with_scratch(once, false).fingerprint() == once.fingerprint());
        for (NodeId v = 0; v < graph.node_count(); ++v) {
          const bool in_place = graph.scratch(v) < 0;
          CHECK(once.scratch(v) == (in_place ? graph.scratch(v) : device.scratch_bytes(graph, v, false)));
          if (in_place) CHECK(device.scratch_bytes(graph, v, false) == 0);
        }
        // Compiling the program checks once more that each node has the scratch that the device needs.
        CHECK_NOTHROW(device_program(device, once));
      }
    }
  }
}

TEST_CASE("graph and stream, run and enqueue, and every further run give the same bits") {
  const Gpu gpu;
  Fixture f;
  const Results expected = run_on_device(f.device, device_program(f.device, f.graph));
  for (const Launch launch : kLaunches) {
    Executor executor(f.device, f.program(), {.launch = launch});
    CHECK(results_of(executor) == expected);  // the constructor has run one step, and these are its results
    for (int i = 0; i < 3; ++i) {
      executor.run(i == 1);
      CHECK(results_of(executor) == expected);
    }
    for (int i = 0; i < 3; ++i) executor.enqueue();
    CHECK(results_of(executor) == expected);
    CHECK(executor.program().instructions.size() == f.schedule.steps.size());
    CHECK_FALSE(run_on_device(f.device, f.program(), {.seed = 2, .launch = launch}) == expected);
  }
}

TEST_CASE("the times are the device's, and those of the ops add up to the step's") {
  const Gpu gpu;
  Fixture f;
  for (const Launch launch : kLaunches) {
    Executor executor(f.device, f.program(), {.launch = launch});
    const runtime::StepReport report = executor.run(true);
    REQUIRE(report.op_seconds.size() == f.schedule.steps.size());
    double sum = 0;
    for (const double seconds : report.op_seconds) {
      CHECK(seconds > 0);
      sum += seconds;
    }
    CHECK(sum == Approx(report.seconds));
    CHECK(executor.run(true).op_seconds == report.op_seconds);
  }
}

TEST_CASE("within a step nothing is allocated, freed or waited for") {
  const Gpu gpu;
  Fixture f;
  Executor replayed(f.device, f.program(kGuard), {.poison = true, .sentinels = true});
  CHECK(calls_of([&] { replayed.enqueue(); }) ==
        std::map<std::string, std::int64_t>{{"cudaGetDevice", 1}, {"cudaGraphLaunch", 1}});
  Executor launched(f.device, f.program(kGuard), {.poison = true, .sentinels = true, .launch = Launch::stream});
  for (const auto& [function, count] : calls_of([&] { launched.enqueue(); })) {
    CAPTURE(function);
    CHECK((function == "kernel" || function == "cudaMemsetAsync" || function == "cudaEventRecordWithFlags" ||
           function == "cudaGetDevice"));
  }
  // Timed runs must not allocate or free anything either, after the first of them has made the CUDA graph that measures
  // times.
  for (Executor* executor : {&replayed, &launched}) {
    executor->run(true);
    for (const auto& [function, count] : calls_of([&] { executor->run(true); })) {
      CAPTURE(function);
      for (const char* part : {"Malloc", "Free", "Create", "Destroy", "Instantiate", "Capture"}) {
        CHECK_FALSE(contains(function, part));
      }
    }
  }
}

TEST_CASE("the caller's stream and the caller's arena are used, and left to the caller") {
  const Gpu gpu;
  Fixture f;
  const Program program = f.program();
  const Results expected = run_on_device(f.device, program);
  const cuda::Stream stream = cuda::make_stream();
  const cuda::DeviceMemory arena = cuda::device_memory(program.arena_bytes + 512);
  const std::int64_t before = fake::allocated_bytes();
  for (const Launch launch : kLaunches) {
    cuda::ExecutorOptions options{
        .launch = launch, .stream = stream.get(), .arena = {arena.get() + 256, program.arena_bytes}};
    Executor executor(f.device, program, options);
    CHECK(fake::allocated_bytes() - before == Executor::bytes_beside_arena(program, false));
    executor.run();
    CHECK(executor.measured_peak_bytes() == program.arena_bytes);
    CHECK(results_of(executor) == expected);
    executor.enqueue();  // this work is still pending while the executor is destroyed
  }
  CHECK(fake::alive() == "1 allocations, 1 streams");
  const auto is_garbage = [](std::byte byte) { return byte == std::byte{0xCB}; };
  CHECK(std::all_of(arena.get(), arena.get() + 256, is_garbage));
  CHECK(std::all_of(arena.get() + 256 + program.arena_bytes, arena.get() + 512 + program.arena_bytes, is_garbage));

  const std::string too_small = error_of<core::DeviceError>([&] {
    Executor(f.device, program, {.arena = {arena.get(), program.arena_bytes - 1}});
  });
  CHECK(contains(too_small, "lower the budget"));
  CHECK_THROWS_AS(Executor(f.device, program, {.arena = {arena.get() + 16, program.arena_bytes}}), core::InputError);
  const std::string default_stream =
      error_of<core::InputError>([&] { Executor(f.device, program, {.stream = cudaStreamPerThread}); });
  CHECK(contains(default_stream, "another one in every thread"));
}

TEST_CASE("a step whose fills are divided into pieces leaves the same bytes in the arena") {
  constexpr std::int64_t kMostFill = 80;
  const Gpu gpu;
  Fixture f;
  const Program program = f.program(kGuard);
  const cuda::DeviceMemory arena = cuda::device_memory(program.arena_bytes);
  const auto arena_after_step = [&](Launch launch, bool poison, std::int64_t most_fill_bytes) {
    std::fill_n(arena.get(), program.arena_bytes, std::byte{0x3C});
    Executor executor(f.device, program,
                      {.poison = poison,
                       .sentinels = true,
                       .launch = launch,
                       .arena = {arena.get(), program.arena_bytes},
                       .most_fill_bytes = most_fill_bytes});
    // The constructor has run a step, so the arena is filled with 0x3C once more. A step with poison begins with a fill
    // of the whole arena, which must overwrite all of these bytes.
    if (poison) std::fill_n(arena.get(), program.arena_bytes, std::byte{0x3C});
    executor.run();
    executor.outputs();
    return Bytes(arena.get(), arena.get() + program.arena_bytes);
  };
  for (const Launch launch : kLaunches) {
    for (const bool poison : {false, true}) {
      fake::take_fills();
      const Bytes expected = arena_after_step(launch, poison, 0);
      const std::vector<std::int64_t> whole = fake::take_fills();
      CHECK(*std::max_element(whole.begin(), whole.end()) >= program.arena_bytes);
      CHECK(arena_after_step(launch, poison, kMostFill) == expected);
      const std::vector<std::int64_t> pieces = fake::take_fills();
      CHECK(*std::max_element(pieces.begin(), pieces.end()) == kMostFill);
      CHECK(std::accumulate(pieces.begin(), pieces.end(), std::int64_t{0}) ==
            std::accumulate(whole.begin(), whole.end(), std::int64_t{0}));
    }
  }
}

TEST_CASE("out of memory: what was asked, what is free, and a budget that fits") {
  constexpr std::int64_t kBytes = std::int64_t{100} << 20;
  const Gpu gpu(kBytes);
  Fixture f;
  Program program = f.program(kGuard);
  const std::int64_t planned = program.arena_bytes;
  program.arena_bytes = kBytes;
  const std::string error = error_of<core::DeviceError>([&] { Executor(f.device, program, {.sentinels = true}); });
  INFO(error);
  check_says(error, {"arena 100.00 MiB", "only 100.00 MiB", "fake device"});
  const std::string before_number = "a budget of ";
  REQUIRE(contains(error, before_number));
  const char* const number = error.c_str() + error.find(before_number) + before_number.size();
  const std::int64_t fitting = std::strtoll(number, nullptr, 10) << 20;
  CHECK(contains(number, "MiB would fit"));
  CHECK(fitting > kBytes / 4);
  program.arena_bytes = fitting;
  {
    Executor executor(f.device, program, {.sentinels = true});
    CHECK(fake::allocated_bytes() == fitting + Executor::bytes_beside_arena(program, true));
    executor.run();
    CHECK(executor.measured_peak_bytes() <= fitting);
  }
  program.arena_bytes = planned;
  fake::set_device_bytes(1 << 20);
  CHECK(contains(error_of<core::DeviceError>([&] { Executor(f.device, program); }), "use a smaller model"));
}

TEST_CASE("any call may fail: an error says so, and nothing is left behind") {
  fake::reset();
  const Program program = Fixture().program(kGuard);
  for (const Launch launch : kLaunches) {
    std::map<std::string, std::int64_t> calls;
    const auto use = [&] {
      Device device;
      Executor executor(device, program, {.poison = true, .sentinels = true, .launch = launch});
      executor.run();
      executor.run(true);
      executor.enqueue();
      executor.outputs();
      executor.sink_digests();
      executor.measured_peak_bytes();
      calls = fake::calls();
    };
    fake::reset();
    use();
    const auto every_call = calls;
    std::int64_t kernels_of_no_step = 0;
    for (const auto& [function, count] : every_call) {
      if (contains(function, "Destroy")) continue;
      check_failures(function, count, use, [&, kernel = function == "kernel"](const std::string& error) {
        kernels_of_no_step += kernel && !contains(error, "step ");
      });
    }
    CHECK(kernels_of_no_step == 1);  // one kernel belongs to no step: FindTouched, which finds which memory was written
  }
}

TEST_CASE("an executor survives a call that failed") {
  const Gpu gpu;
  Fixture f;
  for (const Launch launch : kLaunches) {
    Executor executor(f.device, f.program(), {.launch = launch});
    executor.run();
    const Results expected = results_of(executor);
    const auto calls = calls_of([&] { Executor(f.device, f.program(), {.launch = launch}).run(true); });
    for (const auto& [function, count] : calls) {
      if (contains(function, "Destroy") || contains(function, "Free")) continue;
      fake::fail_call(function, 1);
      error_of<core::DeviceError>([&] { executor.run(true); });
      fake::fail_call(function, 0);
      CAPTURE(function);
      CHECK(executor.run(true).op_seconds.size() == f.schedule.steps.size());
      CHECK(results_of(executor) == expected);
    }
  }
}

TEST_CASE("a kernel that fails at its launch is named with its step and node") {
  for (const Launch launch : kLaunches) {
    const Gpu gpu;
    Fixture f;
    fake::fail_call("kernel", 1, cudaErrorInvalidConfiguration);
    const std::string error = error_of<core::DeviceError>([&] { Executor(f.device, f.program(), {.launch = launch}); });
    check_says(error, {"step 0, matmul hidden: ", "invalid configuration argument"});
    CHECK(fake::last_error() == cudaSuccess);
  }
}

TEST_CASE("a kernel that fails later is named by the first step") {
  fake::reset();
  const std::int64_t kernels = [] {
    Fixture f;
    Executor executor(f.device, f.program(), {.launch = Launch::stream});
    return fake::calls()["kernel"];
  }();
  std::int64_t last_step = 0;
  for (std::int64_t nth = 1; nth <= kernels; ++nth) {
    const Gpu gpu;
    Fixture f;
    fake::fail_kernel(nth);
    const std::string error = error_of<core::DeviceError>([&] { Executor(f.device, f.program()); });
    INFO(error);
    REQUIRE(error.rfind("step ", 0) == 0);
    CHECK(contains(error, "an illegal memory access was encountered"));
    const std::int64_t step = std::strtoll(error.c_str() + 5, nullptr, 10);
    CHECK((step == last_step || step == last_step + 1));
    last_step = step;
    const NodeId node = f.schedule.steps[static_cast<std::size_t>(step)];
    CHECK(contains(error, fmt::format(" {}", f.graph.name(node))));
    const bool again = std::count(f.schedule.steps.begin(), f.schedule.steps.begin() + step, node) > 0;
    CHECK(contains(error, " again: ") == again);
  }
  const Gpu gpu;  // a new device, because the error on the old device is permanent
  CHECK(last_step + 1 == Fixture().schedule.length());
}

TEST_CASE("a kernel that fails in a later step ends in an error from whoever waits first") {
  for (const Launch launch : kLaunches) {
    for (int how = 0; how < 4; ++how) {
      const Gpu gpu;
      Fixture f;
      Executor executor(f.device, f.program(), {.launch = launch});
      executor.run();
      fake::fail_kernel(3);
      const std::string error = error_of<core::DeviceError>([&] {
        if (how == 0) executor.run();
        if (how == 1) executor.run(true);
        if (how >= 2) executor.enqueue();
        if (how == 2) executor.outputs();
        if (how == 3) executor.sink_digests();
      });
      // If the fake device runs kernels early, the kernel fails before the rest of the step is launched. The message is
      // then about the launch.
      const std::string who = fake::order() == fake::Order::late ? "a kernel of the step failed: " : "";
      CHECK(contains(error, who + "an illegal memory access"));
      CHECK_FALSE(error_of<core::DeviceError>([&] { executor.run(); }).empty());
      CHECK_FALSE(error_of<core::DeviceError>([&] { Executor(f.device, f.program()); }).empty());
    }
  }
}

TEST_CASE("sentinels: buffers laid over each other, and writes behind a buffer, are noticed") {
  const Graph graph = build_graph({make_node("source", 300), make_node("a", 200, {0}), make_node("b", 300, {1}),
                                   make_node("c", 50, {2}), make_node("sink", 100, {3, 1})});
  const Gpu gpu;
  Device device;
  Program sound = device_program(device, graph, kGuard);
  for (const Launch launch : kLaunches) {
    const cuda::ExecutorOptions options{.sentinels = true, .launch = launch};
    const auto error = [&](const Program& program) {
      return error_of<core::Error>([&] { Executor(device, program, options); });
    };
    CHECK(error(sound).empty());
    Program overlaid = sound;  // places b at the address of a, although the sink still reads a
    output_of(overlaid, 2).offset = output_of(sound, 1).offset;
    CHECK(contains(error(overlaid), "step 2, node 'b', wrote beyond the end of the buffer of node 'a'"));
    for (const std::size_t step : {0, 1, 3}) {
      Program too_long = sound;
      output_of(too_long, step).bytes = output_of(too_long, step).reserved + 1;
      const std::string name = graph.name(too_long.instructions[step].node);
      CHECK(
          contains(error(too_long), fmt::format("node '{0}', wrote beyond the end of the buffer of node '{0}'", name)));
    }
  }
}

TEST_CASE("sentinels: a guard that is overwritten in a later step is noticed by run") {
  const Gpu gpu;
  Fixture f;
  Program program = f.program(kGuard);
  const cuda::DeviceMemory arena = cuda::device_memory(program.arena_bytes);
  for (const Launch launch : kLaunches) {
    Executor executor(f.device, program,
                      {.sentinels = true, .launch = launch, .arena = {arena.get(), program.arena_bytes}});
    CHECK_NOTHROW(executor.run());
    const runtime::Location& hidden = output_of(program, 0);
    std::byte* guard = arena.get() + hidden.offset + hidden.reserved;
    // The second kernel of a step checks the guard bytes around the output of step 0.
    fake::before_kernel(2, [=] { *guard = std::byte{0}; });
    CHECK(contains(error_of<core::Error>([&] { executor.run(); }),
                   "step 0, node 'hidden', wrote beyond the end of the buffer of node 'hidden'"));
  }
}

TEST_CASE("poison shows a read after free") {
  const Gpu gpu;
  Device device;
  const Graph graph = build_graph({make_node("a", 200), make_node("b", 300, {0}), make_node("sink", 100, {0, 1})});
  Program program = device_program(device, graph);
  const Results expected = run_on_device(device, program);
  free_early(program, 1, 0);  // frees `a` before the sink, which still reads it
  CHECK(run_on_device(device, program) == expected);
  CHECK_FALSE(run_on_device(device, program, {.poison = true}) == expected);
}

TEST_CASE("the measured peak is what was written, not what was planned") {
  const Gpu gpu;
  Device device;
  const Graph graph = build_graph({make_node("a", 5 << 20), make_node("b", 300, {0})});
  Program program = device_program(device, graph);
  const std::int64_t needed = program.arena_bytes;
  program.arena_bytes += std::int64_t{3} << 20;
  {
    Executor roomy(device, program);
    roomy.run();
    CHECK(roomy.measured_peak_bytes() == needed);
  }
  const cuda::DeviceMemory arena = cuda::device_memory(program.arena_bytes);
  Executor careless(device, program, {.arena = {arena.get(), program.arena_bytes}});
  std::byte* last = arena.get() + needed + 1000;
  fake::before_kernel(1, [=] { *last = std::byte{7}; });
  careless.run();
  CHECK(careless.measured_peak_bytes() == core::align_up(needed + 1001, program.alignment));
}

TEST_CASE("programs that are not made for this device are refused") {
  const Gpu gpu;
  fake::set_cudnn(true);
  Device device;
  const Graph synthetic = build_graph({make_node("a", 100), make_node("b", 100, {0})});
  CHECK_THROWS_AS(Executor(device, device_program(device, synthetic, 0, 8)), core::InputError);
  CHECK_NOTHROW(Executor(device, device_program(device, synthetic, 0, 16)));
  CHECK_THROWS_AS(Executor(device, device_program(device, synthetic), {.sentinels = true}), core::InputError);

  const Graph bare = tiny_model("unet"), graph = device.with_scratch(bare, false);
  CHECK_THROWS_AS(device_program(device, graph, 0, 8), core::InputError);
  // The workspaces of libraries need a higher alignment than the tensors of Cairn's own kernels.
  CHECK_THROWS_AS(Executor(device, device_program(device, graph, 0, 16)), core::InputError);
  CHECK_THROWS_AS(device_program(device, bare), core::InputError);
  const std::string error = error_of<core::InputError>([&] { Executor(device, compiled(bare)); });
  CHECK(contains(error, "bytes of scratch on this device"));
}

TEST_CASE("ids out of range are found before they reach a kernel") {
  const Gpu gpu;
  Device device;
  const Graph graph = device.with_scratch(lookup_out_of_range(), false);
  const Program program = device_program(device, graph);
  CHECK(contains(error_of<core::Error>([&] { Executor(device, program); }), "node 'lookup' reads resident 'ids'"));
}

}  // namespace cairn::tests::executor_test
