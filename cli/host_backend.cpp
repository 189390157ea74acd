#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "cairn/cli/backend.h"
#include "cairn/cli/common.h"
#include "cairn/core/error.h"
#include "cairn/core/machine/thread_pool.h"
#include "cairn/runtime/executor.h"
#include "cairn/runtime/measure.h"
#include "cairn/runtime/program.h"
#include "cairn/solvers/plan/planner.h"

namespace cairn::cli {
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

  core::Graph prepare(const core::Graph& graph, core::Precision precision) override {
    if (precision != core::Precision::fp32)
      throw core::InputError(fmt::format("the host executes fp32 only, not {}; drop --precision or use --backend cuda",
                                         core::to_string(precision)));
    if (core::stores_bf16(graph))
      throw core::InputError(
          fmt::format("the host executes fp32 only, but '{}' stores bf16; use --backend cuda", graph.name()));
    return with_least_scratch(graph);
  }

  Execution execute(const ExecuteRequest& request) override {
    runtime::ExecuteOptions options;
    options.seed = request.seed;
    options.poison = request.poison;
    options.sentinels = request.guard_bytes > 0;
    options.rounding_noise = request.rounding_noise;
    options.before_step = [](const runtime::Instruction& instruction) {
      if (catch_interrupt()) throw Failure(kInterrupted, fmt::format("interrupted at step {}", instruction.step));
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
    const core::Schedule schedule = core::baseline_schedule(graph);
    const core::Plan plan = solvers::plan_memory(graph, schedule, {.alignment = 256, .limit = {.work = 0}});
    const auto executor = runtime::host_executor(runtime::compile(graph, schedule, plan));
    return median_of_runs(*executor, kSeconds);
  }

  std::int64_t cache_bytes() const override { return std::int64_t{8} << 20; }

 private:
  /// A graph that was measured on another machine may know less scratch than the host's kernels need.
  static core::Graph with_least_scratch(const core::Graph& graph) {
    core::GraphBuilder builder(graph);
    bool enough = true;
    for (core::NodeId v = 0; v < graph.node_count(); ++v) {
      if (graph.op(v) == nullptr || graph.scratch(v) < 0) continue;
      const std::int64_t needed = runtime::host_scratch(graph, v);
      if (needed <= graph.scratch(v)) continue;
      builder.node(v).scratch = needed;
      enough = false;
    }
    return enough ? graph : builder.build();
  }
};

}  // namespace

std::unique_ptr<Backend> open_host_backend() { return std::make_unique<HostBackend>(); }

}  // namespace cairn::cli
