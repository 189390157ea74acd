#pragma once

#include "cairn/cuda/internal/machine.h"
#include "cairn/runtime/device/step.h"

namespace cairn::cuda {

/// Calls the functions of runtime::device::Step with the Machine of a GPU. The functions of this class are defined in
/// step.cu, which nvcc compiles. So files that only call them can be compiled without nvcc.
class MachineStep {
 public:
  /// All arguments must outlive this object.
  MachineStep(Machine& machine, runtime::device::Library& library, const runtime::Program& program,
              const runtime::Liveness& lives, bool poison, const runtime::device::StepMemory& memory)
      : machine_(machine), step_(program, lives, poison, memory, library) {}

  void begin();
  void issue(const runtime::Instruction& instruction, bool dirty_scratch = false);
  void end_copies(std::int64_t step);
  void find_touched(const std::byte* arena, std::int64_t bytes, int paint, std::int64_t* ends);
  std::byte* address(const runtime::Location& location) const { return step_.address(location); }

 private:
  Machine& machine_;
  runtime::device::Step step_;
};

/// Enqueues a copy of elements within the device's memory. If the types differ, they must be f32 and bf16, and the
/// elements are converted.
void copy_elements(const Machine& machine, const void* from, core::ElementType from_type, void* to,
                   core::ElementType to_type, std::int64_t elements);

}  // namespace cairn::cuda
