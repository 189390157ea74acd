#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/machine/thread_pool.h"
#include "cairn/pipeline/internal/backends.h"
#include "cairn/runtime/executor.h"
#include "cairn/runtime/program.h"

namespace cairn::pipeline {
namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

class HostBackend : public Backend {
 public:
  std::string name() const override { return "host"; }
  std::string device() const override { return fmt::format("{}, {} threads", processor(), core::thread_count()); }

  /// A graph that was measured on another machine may know less scratch than the host's kernels need.
  core::Graph prepare(const core::Graph& graph, core::Precision precision) override {
    if (precision != core::Precision::fp32)
      throw core::InputError(fmt::format("the host executes fp32 only, not {}; drop --precision or use --backend cuda",
                                         core::to_string(precision)));
    if (core::stores_bf16(graph))
      throw core::InputError(
          fmt::format("the host executes fp32 only, but '{}' stores bf16; use --backend cuda", graph.name()));
    std::vector<std::int64_t> scratch(graph.view().scratch, graph.view().scratch + graph.node_count());
    for (core::NodeId v = 0; v < graph.node_count(); ++v) {
      if (graph.op(v) != nullptr && scratch[v] >= 0) scratch[v] = std::max(scratch[v], runtime::host_scratch(graph, v));
    }
    return graph.with_scratch(std::move(scratch));
  }

  Execution execute(const ExecuteRequest& request) override {
    runtime::ExecuteOptions options;
    options.seed = request.seed;
    options.poison = request.poison;
    options.sentinels = request.guard_bytes > 0;
    options.rounding_noise = request.rounding_noise;
    options.before_step = [&](const runtime::Instruction& instruction) {
      if (is_raised(request.stop))
        throw core::InterruptedError(fmt::format("interrupted at step {}", instruction.step));
    };
    const auto executor = runtime::host_executor(
        runtime::compile(request.graph, request.schedule, request.plan, {.guard_bytes = request.guard_bytes}), options);
    Execution execution;
    execution.report = median_report(request.repeats, [&] { return executor->run(true); });
    execution.outputs = keep_bytes(executor->outputs());
    execution.sinks = executor->sink_digests();
    return execution;
  }

  double time_step(const core::Graph& graph, core::Precision) override {
    constexpr double kSeconds = 0.02;
    return median_of_runs(*runtime::host_executor(compile_quickly(graph, {})), kSeconds);
  }

  std::int64_t cache_bytes() const override { return std::int64_t{8} << 20; }
};

}  // namespace

std::unique_ptr<Backend> open_host_backend() { return std::make_unique<HostBackend>(); }

}  // namespace cairn::pipeline
