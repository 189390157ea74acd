#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"
#include "cairn/cuda/support/executor.h"
#include "cairn/runtime/program.h"
#include "cairn/solvers/plan/planner.h"

/// Programs for a device.
namespace cairn::tests {

inline runtime::Program device_program(cuda::Device& device, const core::Graph& graph, const core::Schedule& schedule,
                                       std::int64_t guard_bytes = 0, std::int64_t alignment = 256, bool tf32 = false) {
  const core::Plan plan =
      solvers::plan_memory(graph, schedule, {.alignment = alignment, .guard_bytes = guard_bytes, .limit = {.work = 0}});
  return runtime::compile(graph, schedule, plan, cuda::compile_options(device, tf32, guard_bytes));
}

}  // namespace cairn::tests
