#include "cairn/cuda/internal/pumpkin.h"
#include "cairn/cuda/internal/sim_machine.cuh"
#include "cairn/solvers/order/device/pumpkin_kernel.h"

namespace cairn::cuda {

sim::PumpkinAnswer solve_pumpkin(const sim::PumpkinProblem& problem, const sim::PumpkinOptions& options) {
  SimMachine machine;
  return sim::device::solve_pumpkin(machine, problem, options);
}

}  // namespace cairn::cuda
