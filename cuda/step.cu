#include "cairn/cuda/internal/machine.cuh"
#include "cairn/cuda/internal/step.h"

namespace cairn::cuda {

void MachineStep::begin() { step_.begin(machine_); }

void MachineStep::issue(const runtime::Instruction& instruction, bool dirty_scratch) {
  step_.issue(machine_, instruction, dirty_scratch);
}

void MachineStep::find_touched(const std::byte* arena, std::int64_t bytes, int paint, std::int64_t* ends) {
  runtime::device::find_touched(machine_, arena, bytes, paint, ends);
}

}  // namespace cairn::cuda
