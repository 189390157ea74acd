// This file is compiled only in builds with CUDA.
#include <fmt/format.h>

#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/support/text.h"
#include "cairn/cuda/device.h"
#include "cairn/cuda/support/accelerator.h"
#include "cairn/cuda/support/executor.h"
#include "cairn/cuda/support/simulator.h"
#include "cairn/pipeline/internal/backends.h"
#include "cairn/runtime/overlap.h"

namespace cairn::pipeline {
namespace {

bool is_tf32(core::Precision precision) { return precision == core::Precision::tf32; }

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(int ordinal) : device_({.ordinal = ordinal}) {}

  std::string name() const override { return "cuda"; }
  std::string device() const override {
    const cuda::DeviceInfo& info = device_.info();
    return fmt::format("{}, sm_{}{}, {}", info.name, info.sm_major, info.sm_minor,
                       core::format_bytes(info.total_bytes));
  }
  std::string note() const override { return "convolutions by " + device_.convolutions(); }

  core::Graph prepare(const core::Graph& graph, core::Precision precision) override {
    return device_.with_scratch(graph, is_tf32(precision));
  }

  std::vector<runtime::ScratchVariant> scratch_variants(const core::Graph& graph, core::NodeId v,
                                                        core::Precision precision) override {
    if (graph.op(v) == nullptr) return {};
    return device_.scratch_variants(graph, v, is_tf32(precision));
  }

  std::unique_ptr<runtime::Executor> load(const ExecuteRequest& request) override {
    cuda::ExecutorOptions options;
    options.seed = request.seed;
    options.poison = request.poison;
    options.arena = request.arena;
    options.sentinels = request.guard_bytes > 0;
    options.stop = request.stop;
    options.stream = request.stream;
    options.streams = request.streams;
    options.half_duplex = request.half_duplex;
    return std::make_unique<cuda::Executor>(
        device_,
        runtime::compile(request.graph, request.schedule, request.plan,
                         cuda::compile_options(device_, is_tf32(request.precision), request.guard_bytes)),
        options);
  }
  bool times_ops_for_free() const override { return false; }
  int most_streams() const override { return runtime::kMostStreams; }

  runtime::TimedWork time_step(const core::Graph& graph, core::Precision precision,
                               const std::function<bool()>& expired) override {
    cuda::Executor executor(device_, compile_quickly(graph, cuda::compile_options(device_, is_tf32(precision))));
    return runtime::time_work([&] { return std::vector{timing_of(executor.run())}; },
                              {.seconds = seconds_of_timing(), .expired = expired});
  }
  double seconds_of_timing() const override { return 0.005; }

  std::int64_t cache_bytes() const override { return device_.info().l2_bytes; }

 private:
  cuda::Device device_;
};

}  // namespace

std::unique_ptr<Backend> open_cuda_backend(int ordinal) { return std::make_unique<CudaBackend>(ordinal); }

std::shared_ptr<solvers::Accelerator> open_cuda_accelerator(int ordinal) { return cuda::make_accelerator(ordinal); }

std::unique_ptr<sim::Simulator> open_cuda_simulator(const core::Graph& graph, int ordinal) {
  return cuda::device_simulator(graph, ordinal);
}

std::string why_no_device(int ordinal) { return cuda::probe(ordinal).reason; }

}  // namespace cairn::pipeline
