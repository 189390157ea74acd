#include "cairn/cuda/internal/pumpkin.h"
#include "cairn/cuda/internal/sim_machine.cuh"
#include "cairn/solvers/order/device/pumpkin_kernel.h"

namespace cairn::cuda {

solvers::PumpkinAnswer solve_pumpkin(const solvers::PumpkinProblem& problem, const solvers::PumpkinOptions& options) {
  SimMachine machine;
  return solvers::device::solve_pumpkin(machine, problem, options);
}

}  // namespace cairn::cuda
