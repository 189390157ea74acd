#include "cairn/cuda/internal/machine.cuh"
#include "cairn/cuda/internal/machine_step.h"

namespace cairn::cuda {

MachineStep::MachineStep(Machine& machine, const runtime::Program& program, const runtime::Liveness& lives, bool poison,
                         const runtime::device::StepMemory& memory)
    : machine_(machine), step_(program, lives, poison, memory) {}

void MachineStep::begin() { step_.begin(machine_); }

void MachineStep::issue(const runtime::Instruction& instruction, bool dirty_scratch) {
  step_.issue(machine_, instruction, dirty_scratch);
}

void find_touched(Machine& machine, const std::byte* arena, std::int64_t bytes, int paint, std::int64_t* ends) {
  runtime::device::find_touched(machine, arena, bytes, paint, ends);
}

}  // namespace cairn::cuda
