// Measures Cairn's kernels on a GPU: bytes per second compared with the device's own copy, matrix products, and the
// cost of a launch.
//   cairn_cuda_bench [--benchmark_filter=REGEX] [--benchmark_format=json]
//   cairn_cuda_bench --counted     prints what kernels do and the least time that this takes; needs no device
// Every op runs alone. It is replayed from a CUDA graph, on memory of more than twice the size of the L2 cache. The
// counter `bytes_per_second` counts each input and each output once. `of_copy` is the fraction of the rate that
// cudaMemcpy reaches in the same run. All figures are medians.
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
<<<<<<< HEAD
=======
using core::OpKind;
using core::Shape;

struct NamedCase {
  std::string name;
  tests::OpCase op;
};

NamedCase op_case(std::string name, OpKind kind, Shape out, std::vector<Shape> args, core::OpAttrs attrs = {}) {
  NamedCase result{std::move(name), {{}, std::move(args)}};
  result.op.op.kind = kind;
  result.op.op.shape = std::move(out);
  result.op.op.attrs = std::move(attrs);
  return result;
}

/// Returns the ops whose speed is limited by memory, with the shapes of ResNet-50 (batch 128) and of GPT-2 small (16
/// sequences of 1024 tokens).
std::vector<NamedCase> memory_bound_cases() {
  const Shape image{128, 56, 56, 256}, tokens{16, 1024, 768}, scores{16, 12, 1024, 1024}, logits{4096, 50257};
  const Shape channels{2, 256}, params{2, 768}, rows{16384, 2};
  std::vector<NamedCase> cases;
  const auto add = [&](NamedCase one) { cases.push_back(std::move(one)); };
  add(op_case("add", OpKind::add, image, {image, image}));
  add(op_case("scale", OpKind::scale, image, {image}, {.alpha = 0.5}));
  add(op_case("relu", OpKind::relu, image, {image}));
  add(op_case("relu_grad", OpKind::relu_grad, image, {image, image}));
  add(op_case("gelu", OpKind::gelu, {16, 1024, 3072}, {{16, 1024, 3072}}));
  add(op_case("gelu_grad", OpKind::gelu_grad, {16, 1024, 3072}, {{16, 1024, 3072}, {16, 1024, 3072}}));
  add(op_case("dropout", OpKind::dropout, image, {image}, {.p = 0.1, .seed = 1, .stream = 2}));
  add(op_case("batchnorm_stats", OpKind::batchnorm_stats, channels, {image}));
  add(op_case("batchnorm", OpKind::batchnorm, image, {image, channels, channels}));
  add(op_case("batchnorm_grad_params", OpKind::batchnorm_grad_params, channels, {image, image, channels}));
  add(op_case("batchnorm_grad_input", OpKind::batchnorm_grad_input, image,
              {image, image, channels, channels, channels}));
  add(op_case("layernorm_stats", OpKind::layernorm_stats, rows, {tokens}));
  add(op_case("layernorm", OpKind::layernorm, tokens, {tokens, rows, params}));
  add(op_case("layernorm_grad_params", OpKind::layernorm_grad_params, params, {tokens, tokens, rows}));
  add(op_case("layernorm_grad_input", OpKind::layernorm_grad_input, tokens, {tokens, tokens, rows, params}));
  add(op_case("reduce_rows", OpKind::reduce_rows, {3072}, {{16384, 3072}}, {.rows = 16384, .cols = 3072}));
  add(op_case("maxpool", OpKind::maxpool, {128, 56, 56, 64}, {{128, 112, 112, 64}},
              {.kernel = 3, .stride = 2, .pad = 1}));
  add(op_case("maxpool_grad", OpKind::maxpool_grad, {128, 112, 112, 64}, {{128, 56, 56, 64}, {128, 112, 112, 64}},
              {.kernel = 3, .stride = 2, .pad = 1}));
  add(op_case("mean_pool", OpKind::mean_pool, {512, 2048}, {{512, 7, 7, 2048}}));
  add(op_case("mean_pool_grad", OpKind::mean_pool_grad, {512, 7, 7, 2048}, {{512, 2048}}));
  add(op_case("upsample", OpKind::upsample, {16, 256, 256, 64}, {{16, 128, 128, 64}}));
  add(op_case("upsample_grad", OpKind::upsample_grad, {16, 128, 128, 64}, {{16, 256, 256, 64}}));
  add(op_case("concat", OpKind::concat, {16, 128, 128, 256}, {{16, 128, 128, 128}, {16, 128, 128, 128}}));
  add(op_case("slice", OpKind::slice, {16, 1024, 768}, {{16, 1024, 2304}}, {.offset = 768}));
  add(op_case("permute heads", OpKind::permute, {16, 12, 1024, 64}, {{16, 1024, 12, 64}}, {.perm = {0, 2, 1, 3}}));
  add(op_case("permute transpose", OpKind::permute, {64, 768, 1024}, {{64, 1024, 768}}, {.perm = {0, 2, 1}}));
  add(op_case("softmax", OpKind::softmax, scores, {scores}));
  add(op_case("softmax causal", OpKind::softmax, scores, {scores}, {.causal = true}));
  add(op_case("softmax_grad", OpKind::softmax_grad, scores, {scores, scores}));
  add(op_case("embedding", OpKind::embedding, tokens, {{16, 1024}, {50257, 768}}));
  add(op_case("embedding_grad", OpKind::embedding_grad, {50257, 768}, {tokens, {16, 1024}}));
  add(op_case("cross_entropy", OpKind::cross_entropy, {1}, {logits, {4096}}));
  add(op_case("cross_entropy_grad", OpKind::cross_entropy_grad, logits, {logits, {4096}}));
  add(op_case("mse", OpKind::mse, {1}, {image, image}));
  add(op_case("mse_grad", OpKind::mse_grad, image, {image, image}));
  return cases;
}

std::vector<NamedCase> compute_bound_cases() {
  std::vector<NamedCase> cases;
  cases.push_back(op_case("matmul 16384x3072x768", OpKind::matmul, {16384, 3072}, {{16384, 768}, {768, 3072}},
                          {.m = 16384, .n = 3072, .k = 768}));
  cases.push_back(op_case("matmul batched 1024x1024x64", OpKind::matmul, {192, 1024, 1024},
                          {{192, 1024, 64}, {192, 1024, 64}},
                          {.batch = 192, .m = 1024, .n = 1024, .k = 64, .trans_b = true}));
  cases.push_back(op_case("conv 3x3 56x56x64", OpKind::conv2d, {128, 56, 56, 64}, {{128, 56, 56, 64}, {64, 3, 3, 64}},
                          {.stride = 1, .pad = 1}));
  cases.push_back(op_case("conv_grad_input 3x3 56x56x64", OpKind::conv2d_grad_input, {128, 56, 56, 64},
                          {{128, 56, 56, 64}, {64, 3, 3, 64}}, {.stride = 1, .pad = 1}));
  cases.push_back(op_case("conv_grad_weight 3x3 56x56x64", OpKind::conv2d_grad_weight, {64, 3, 3, 64},
                          {{128, 56, 56, 64}, {128, 56, 56, 64}}, {.stride = 1, .pad = 1}));
  return cases;
}
>>>>>>> prose-G

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

  /// Returns the bytes read and written per second by a copy of 2 GiB within the device. This is the median of ten
  /// copies, as for the ops.
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
#ifdef CAIRN_COUNTED  // the tests' interpreter of PTX, which counts
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
