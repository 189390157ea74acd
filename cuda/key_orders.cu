#include <optional>

#include "cairn/cuda/internal/key_orders.h"
#include "cairn/cuda/internal/sim_machine.cuh"
#include "cairn/solvers/order/device/caduceus_kernel.h"
#include "cairn/solvers/order/device/key_orders_kernel.h"

namespace cairn::cuda {

solvers::KeyOrdersFound search_key_orders(const solvers::KeyTree& tree, const solvers::KeyOrderOptions& options) {
  std::optional<SimMachine> machine;
  return solvers::device::search_key_orders(tree, options,
                                            [&]() -> SimMachine& { return machine ? *machine : machine.emplace(); });
}

solvers::CaduceusAnswers solve_caduceus(const solvers::CaduceusBatch& batch, solvers::CaduceusGoal goal) {
  SimMachine machine;
  return solvers::device::solve_caduceus(batch, goal, machine);
}

}  // namespace cairn::cuda
