#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/machine/support/thread_pool.h"
#include "cairn/core/support/text.h"
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

  /// Raises each node's scratch to the bytes that the host's kernels need. The graph may have been prepared for another
  /// device, whose kernels need less scratch.
  core::Graph prepare(const core::Graph& graph, core::Precision precision) override {
    if (precision != core::Precision::fp32)
      throw core::InputError(fmt::format("the host executes fp32 only, not {}; drop {} or use {}",
                                         core::to_string(precision), core::option("precision"),
                                         core::option("backend", "cuda")));
    if (core::stores_bf16(graph))
      throw core::InputError(fmt::format("the host executes fp32 only, but '{}' stores bf16; use {}", graph.name(),
                                         core::option("backend", "cuda")));
    std::vector<std::int64_t> scratch(graph.view().scratch, graph.view().scratch + graph.node_count());
    for (core::NodeId v = 0; v < graph.node_count(); ++v) {
      if (graph.op(v) != nullptr && scratch[v] >= 0) scratch[v] = std::max(scratch[v], runtime::host_scratch(graph, v));
    }
    return graph.with_scratch(std::move(scratch));
  }

  void require_memory(const core::Graph& graph, std::int64_t arena_bytes, std::int64_t least_bytes) override {
    constexpr std::int64_t kOfSearch = std::int64_t{48} << 20;  // bytes that a search may leave allocated when it ends
    runtime::require_host_memory(graph, arena_bytes, kOfSearch, least_bytes);
  }

  std::unique_ptr<runtime::Executor> load(const ExecuteRequest& request) override {
    require_streams(request.streams);
    if (request.stream != nullptr)
      throw core::InputError(fmt::format("the host executes steps without streams of CUDA; drop {} or use {}",
                                         core::option("stream"), core::option("backend", "cuda")));
    runtime::ExecuteOptions options;
    options.seed = request.seed;
    options.poison = request.poison;
    options.delays = request.delays;
    options.arena = request.arena;
    options.sentinels = request.guard_bytes > 0;
    options.reserved_bytes = request.reserved_bytes;
    options.rounding_noise = request.rounding_noise;
    options.half_duplex = request.half_duplex;
    options.copy_delay_seed = request.copy_delay_seed;
    options.before_step = [stop = request.stop, before = request.before_step](const runtime::Instruction& instruction) {
      if (is_raised(stop)) throw core::InterruptedError(fmt::format("interrupted at step {}", instruction.step));
      if (before) before(instruction);
    };
    return runtime::host_executor(
        runtime::compile(request.graph, request.schedule, request.plan, {.guard_bytes = request.guard_bytes}), options);
  }
  bool times_ops_for_free() const override { return true; }

  runtime::TimedWork time_step(const core::Graph& graph, core::Precision,
                               const std::function<bool()>& expired) override {
    runtime::ExecuteOptions options;
    options.before_step = [&](const runtime::Instruction&) {
      if (expired && expired()) throw core::InterruptedError("the time to measure is over");
    };
    options.delays = options.op_delays = true;
    const auto executor = runtime::host_executor(compile_quickly(graph, {}), options);
    // The graph consists of several copies of one op. Each copy is timed separately, because on a busy machine few
    // executions of the whole graph are undisturbed.
    const auto run = [&] {
      const runtime::StepReport report = executor->run(true);
      std::vector<runtime::Timing> timings;
      for (std::size_t i = 0; i < report.op_seconds.size(); ++i) {
        timings.push_back({report.op_seconds[i], report.op_delays[i]});
        // Uses the thread delays of the whole execution, because single ops often report none.
        timings.back().delays.threads = report.delays.threads;
      }
      return timings;
    };
    runtime::TimedWork timed = runtime::time_work(run, {.seconds = seconds_of_timing(), .expired = expired});
    timed.seconds *= static_cast<double>(graph.node_count());
    return timed;
  }
  double seconds_of_timing() const override { return 0.02; }

  std::int64_t cache_bytes() const override { return std::int64_t{8} << 20; }
};

}  // namespace

std::unique_ptr<Backend> open_host_backend() { return std::make_unique<HostBackend>(); }

}  // namespace cairn::pipeline
