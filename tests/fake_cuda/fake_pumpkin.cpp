// What cuda/ solves on a device, with the launches that a device would get.
#include "cairn/cuda/internal/pumpkin.h"
#include "cairn/solvers/order/device/pumpkin_kernel.h"
#include "cairn/tests/support/fiber_machine.h"

namespace cairn::cuda {

solvers::PumpkinAnswer solve_pumpkin(const solvers::PumpkinProblem& problem, const solvers::PumpkinOptions& options) {
  tests::FiberMachine machine;
  return solvers::device::solve_pumpkin(machine, problem, options);
}

}  // namespace cairn::cuda
