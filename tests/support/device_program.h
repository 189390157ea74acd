#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"
#include "cairn/cuda/support/executor.h"
#include "cairn/runtime/executor.h"
#include "cairn/runtime/program.h"
#include "cairn/runtime/support/residents.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/support/outputs.h"

/// These functions make programs for a device, and run graphs on the host and on a device to compare the outputs.
namespace cairn::tests {

inline runtime::Program device_program(cuda::Device& device, const core::Graph& graph, const core::Schedule& schedule,
                                       std::int64_t guard_bytes = 0, std::int64_t alignment = 256, bool tf32 = false) {
  const core::Plan plan =
      solvers::plan_memory(graph, schedule, {.alignment = alignment, .guard_bytes = guard_bytes, .limit = {.work = 0}});
  return runtime::compile(graph, schedule, plan, cuda::compile_options(device, tf32, guard_bytes));
}
/// Returns the program of the baseline schedule.
inline runtime::Program device_program(cuda::Device& device, const core::Graph& graph, std::int64_t guard_bytes = 0,
                                       std::int64_t alignment = 256, bool tf32 = false) {
  return device_program(device, graph, core::baseline_schedule(graph), guard_bytes, alignment, tf32);
}

/// Runs one step, or two if the graph updates weights, because the second step depends on the momenta after the first.
/// Returns the outputs of the last step.
inline Outputs outputs_after_run(runtime::Executor& executor) {
  executor.run();
  if (runtime::updates_weights(executor.program().graph)) executor.run();
  return outputs_of(executor);
}

/// Runs the baseline schedule of the graph, by on_host() on the host and by on_device() on the device. Returns the
/// outputs as outputs_after_run() does.
inline Outputs on_host(const core::Graph& graph) {
  const core::Schedule schedule = core::baseline_schedule(graph);
  const core::Plan plan = solvers::plan_memory(graph, schedule, {.alignment = 256, .limit = {.work = 0}});
  const auto executor = runtime::host_executor(runtime::compile(graph, schedule, plan));
  return outputs_after_run(*executor);
}
inline Outputs on_device(cuda::Device& device, const core::Graph& given, bool tf32 = false) {
  const core::Graph graph = device.with_scratch(given, tf32);
  cuda::Executor executor(device, device_program(device, graph, 0, 256, tf32));
  return outputs_after_run(executor);
}

}  // namespace cairn::tests
