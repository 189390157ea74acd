// Measures Cairn's kernels on a GPU: the bytes per second that they move, compared with a copy on the device; the speed
// of matrix products; and the time of a launch.
//   cairn_cuda_bench [--benchmark_filter=REGEX] [--benchmark_format=json]
//   cairn_cuda_bench --counted prints how much work kernels do and the least time that this work takes; needs no device
// Every op runs alone. It is replayed from a CUDA graph, on tensors that together are more than twice as large as the
// L2 cache. The counter `bytes_per_second` counts each input and each output once. `of_copy` is this rate divided by
// the rate that cudaMemcpy reaches in the same run. The rate of cudaMemcpy is the median of ten copies. All other
// figures are means over the repetitions.
#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/bench/cuda/op_cases.h"
#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/precision.h"
#include "cairn/core/schedule.h"
#include "cairn/cuda/device.h"
#include "cairn/cuda/internal/runtime.h"
#include "cairn/cuda/support/executor.h"
#include "cairn/runtime/measure.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/support/op_case.h"

namespace cairn {
namespace {

using core::ElementType;

std::unique_ptr<cuda::Executor> executor_of(cuda::Device& device, const core::Graph& graph, bool tf32,
                                            cuda::Launch launch = cuda::Launch::graph) {
  const core::Schedule schedule = core::baseline_schedule(graph);
  const core::Plan plan = solvers::plan_memory(graph, schedule, {.alignment = 256, .limit = {.work = 0}});
  cuda::ExecutorOptions options;
  options.launch = launch;
  return std::make_unique<cuda::Executor>(
      device, runtime::compile(graph, schedule, plan, cuda::compile_options(device, tf32)), options);
}

class Bench {
 public:
  Bench() : copy_rate_(measure_copy()) {}

  void register_all() {
    benchmark::RegisterBenchmark("copy",
                                 [this](benchmark::State& state) {
                                   for (auto _ : state)
                                     state.SetIterationTime(2.0 * static_cast<double>(kCopyBytes) / copy_rate_);
                                   state.counters["bytes_per_second"] = copy_rate_;
                                 })
        ->UseManualTime()
        ->Iterations(1);
    for (const ElementType storage : {ElementType::f32, ElementType::bf16}) {
      for (const bench::NamedCase& one : bench::memory_bound_cases({})) {
        add(fmt::format("memory/{}/{}", core::to_string(storage), one.name), one, storage, false, true);
      }
      for (const bench::NamedCase& one : bench::compute_bound_cases()) {
        add(fmt::format("compute/{}/{}", core::to_string(storage), one.name), one, storage, false, false);
        if (storage == ElementType::f32) add(fmt::format("compute/tf32/{}", one.name), one, storage, true, false);
      }
    }
    for (const cuda::Launch launch : {cuda::Launch::graph, cuda::Launch::stream}) {
      const std::string how = launch == cuda::Launch::graph ? "graph replay" : "stream launches";
      benchmark::RegisterBenchmark(("launch/5000 synthetic nodes/" + how).c_str(),
                                   [this, launch](benchmark::State& s) { launch_cost(s, launch); })
          ->UseManualTime()
          ->MinTime(0.2);
    }
  }

 private:
  static constexpr std::size_t kCopyBytes = std::size_t{2} << 30;

  /// Returns the bytes per second, read plus written, of a copy of 2 GiB within the device's memory, as the median of
  /// ten copies.
  static double measure_copy() {
    const auto bytes = static_cast<std::int64_t>(kCopyBytes);
    const cuda::DeviceMemory from = cuda::device_memory(bytes), to = cuda::device_memory(bytes);
    const cuda::Event begin = cuda::make_event(cudaEventDefault), end = cuda::make_event(cudaEventDefault);
    const cuda::Stream stream = cuda::make_stream();
    cuda::check(cudaMemsetAsync(from.get(), 0x3C, kCopyBytes, stream.get()), "filling memory");
    std::vector<double> seconds;
    for (int i = 0; i < 10; ++i) {
      cuda::check(cudaEventRecord(begin.get(), stream.get()), "an event");
      cuda::check(cudaMemcpyAsync(to.get(), from.get(), kCopyBytes, cudaMemcpyDeviceToDevice, stream.get()), "a copy");
      cuda::check(cudaEventRecord(end.get(), stream.get()), "an event");
      cuda::check(cudaStreamSynchronize(stream.get()), "a copy");
      float milliseconds = 0;
      cuda::check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "the time of a copy");
      seconds.push_back(static_cast<double>(milliseconds) / 1e3);
    }
    return 2.0 * static_cast<double>(kCopyBytes) / runtime::median(std::move(seconds));
  }

  void add(const std::string& name, const bench::NamedCase& one, ElementType storage, bool tf32, bool memory_bound) {
    benchmark::RegisterBenchmark(
        name.c_str(),
        [=, this](benchmark::State& state) {
          const core::Graph single = device_.with_scratch(tests::graph_of(one.op, storage), tf32);
          const std::int64_t copies = runtime::sample_copies(single, 0, device_.info().l2_bytes);
          const auto executor = executor_of(device_, runtime::sample_graph(single, 0, copies), tf32);
          executor->run();
          double seconds = 0;
          for (auto _ : state) {
            const double step = executor->run().seconds / static_cast<double>(copies);
            seconds += step;
            state.SetIterationTime(step);
          }
          const double each = seconds / static_cast<double>(state.iterations());
          const core::OpWork work = core::op_work(one.op.op, one.op.args);
          const double bytes = static_cast<double>(bench::moved_bytes(single));
          state.counters["bytes_per_second"] = bytes / each;
          if (memory_bound) {
            state.counters["of_copy"] = bytes / each / copy_rate_;
          } else {
            state.counters["flop_per_second"] = static_cast<double>(work.flops) / each;
          }
        })
        ->UseManualTime()
        ->MinTime(0.05);
  }

  void launch_cost(benchmark::State& state, cuda::Launch launch) {
    constexpr core::NodeId kNodes = 5000;
    core::GraphBuilder builder("chain of tiny nodes");
    for (core::NodeId v = 0; v < kNodes; ++v) {
      core::Node node;
      node.size = 256;
      node.keep = v + 1 == kNodes;
      if (v > 0) node.inputs = {v - 1};
      builder.add(std::move(node));
    }
    const auto executor = executor_of(device_, builder.build(), false, launch);
    executor->run();
    double seconds = 0;
    for (auto _ : state) {
      const double step = executor->run().seconds;
      seconds += step;
      state.SetIterationTime(step);
    }
    state.counters["ns_per_node"] = seconds / static_cast<double>(state.iterations()) / kNodes * 1e9;
  }

  cuda::Device device_;
  double copy_rate_;
};

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
#ifdef CAIRN_COUNTED  // set if the build has the interpreter of PTX (tests/ptx/), which counts the work
  if (argc == 2 && std::string_view(argv[1]) == "--counted") {
    execl(CAIRN_COUNTED, CAIRN_COUNTED, "[.counted]", static_cast<char*>(nullptr));
    std::perror("cairn_cuda_bench: " CAIRN_COUNTED);
    return 1;
  }
#endif
  benchmark::Initialize(&argc, argv);
  const cairn::cuda::Probe probe = cairn::cuda::probe();
  if (!probe.available) {
    std::fprintf(stderr, "cairn_cuda_bench: %s\n", probe.reason.c_str());
    return 5;
  }
  benchmark::AddCustomContext("device", probe.device->name);
  cairn::Bench bench;
  bench.register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
