#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cairn/pipeline/backend.h"
#include "cairn/runtime/measure.h"
#include "cairn/solvers/plan/planner.h"

namespace cairn::pipeline {

std::unique_ptr<Backend> open_host_backend();
/// These three functions open the visible GPU with the index `ordinal`. They throw DeviceError if there is no such GPU,
/// and always in builds without CUDA.
std::unique_ptr<Backend> open_cuda_backend(int ordinal);
std::shared_ptr<solvers::Accelerator> open_cuda_accelerator(int ordinal);
std::unique_ptr<sim::Simulator> open_cuda_simulator(const core::Graph& graph, int ordinal);
/// Returns why there is no GPU with the index `ordinal`, or an empty text if there is such a GPU.
std::string why_no_device(int ordinal);

inline bool is_raised(const std::atomic<bool>* stop) { return stop != nullptr && *stop; }

/// Copies the results of the executor's last execution, and the measured bytes, into `execution`.
inline void read_results(runtime::Executor& executor, Execution& execution) {
  execution.measured_peak_bytes = executor.measured_peak_bytes();
  execution.host_planned_bytes = executor.program().host_arena_bytes;
  execution.host_measured_bytes = executor.measured_host_peak_bytes();
  for (const runtime::Output& output : executor.outputs()) {
    execution.outputs.push_back({output.node, output.output, {output.bytes.begin(), output.bytes.end()}});
  }
  execution.sinks = executor.sink_digests();
}

inline runtime::Timing timing_of(const runtime::StepReport& report) { return {report.seconds, report.delays}; }

/// Compiles the baseline, which runs the nodes in the graph's input order. A work limit of 0 permits no search for a
/// good plan, so planning is fast.
inline runtime::Program compile_quickly(const core::Graph& graph, const runtime::CompileOptions& options) {
  const core::Schedule schedule = core::baseline_schedule(graph);
  return runtime::compile(graph, schedule,
                          solvers::plan_memory(graph, schedule, {.alignment = 256, .limit = {.work = 0}}), options);
}

}  // namespace cairn::pipeline
