// Compiled only in builds with CUDA.
#include <fmt/format.h>

#include "cairn/core/error.h"
#include "cairn/core/text.h"
#include "cairn/cuda/accelerator.h"
#include "cairn/cuda/device.h"
#include "cairn/cuda/executor.h"
#include "cairn/cuda/simulator.h"
#include "cairn/pipeline/internal/backends.h"

namespace cairn::pipeline {
namespace {

bool is_tf32(core::Precision precision) { return precision == core::Precision::tf32; }

class CudaBackend : public Backend {
 public:
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

  Execution execute(const ExecuteRequest& request) override {
    const auto stop_if_interrupted = [&] {
      if (is_raised(request.stop)) throw core::InterruptedError("interrupted between two steps");
    };
    stop_if_interrupted();
    cuda::ExecutorOptions options;
    options.seed = request.seed;
    options.poison = request.poison;
    options.sentinels = request.guard_bytes > 0;
    cuda::Executor executor(
        device_,
        runtime::compile(request.graph, request.schedule, request.plan,
                         cuda::compile_options(device_, is_tf32(request.precision), request.guard_bytes)),
        options);
    Execution execution;
    execution.report = median_report(request.repeats, [&] {
      stop_if_interrupted();
      return executor.run();
    });
    // The events that take the times of single ops are kept out of the step that is reported.
    execution.report.op_seconds = executor.run(true).op_seconds;
    execution.outputs = keep_bytes(executor.outputs());
    execution.sinks = executor.sink_digests();
    return execution;
  }

  double time_step(const core::Graph& graph, core::Precision precision) override {
    constexpr double kSeconds = 0.005;
    cuda::Executor executor(device_, compile_quickly(graph, cuda::compile_options(device_, is_tf32(precision))));
    return median_of_runs(executor, kSeconds);
  }

  std::int64_t cache_bytes() const override { return device_.info().l2_bytes; }

 private:
  cuda::Device device_;
};

}  // namespace

std::unique_ptr<Backend> open_cuda_backend() { return std::make_unique<CudaBackend>(); }

std::shared_ptr<solvers::Accelerator> open_cuda_accelerator() { return cuda::make_accelerator(); }

std::unique_ptr<sim::Simulator> open_cuda_simulator(const core::Graph& graph) { return cuda::device_simulator(graph); }

std::string why_no_device() { return cuda::probe().reason; }

}  // namespace cairn::pipeline
