#include "cairn/cuda/internal/machine.cuh"
#include "cairn/cuda/internal/step.h"
#include "cairn/runtime/device/kernels/convert.h"

namespace cairn::cuda {

void MachineStep::begin() { step_.begin(machine_); }

void MachineStep::issue(const runtime::Instruction& instruction, bool dirty_scratch) {
  step_.issue(machine_, instruction, dirty_scratch);
}

void MachineStep::end_copies(std::int64_t step) { step_.end_copies(machine_, step); }

void MachineStep::find_touched(const std::byte* arena, std::int64_t bytes, int paint, std::int64_t* ends) {
  runtime::device::find_touched(machine_, arena, bytes, paint, ends);
}

void copy_elements(const Machine& machine, const void* from, core::ElementType from_type, void* to,
                   core::ElementType to_type, std::int64_t elements) {
  if (elements == 0) return;
  if (from_type != to_type) return runtime::device::convert(machine, from, to, to_type, elements);
  const auto bytes = static_cast<std::size_t>(elements * core::element_bytes(from_type));
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, machine.stream()), "a copy");
}

}  // namespace cairn::cuda
