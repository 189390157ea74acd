#include <optional>

#include "cairn/cuda/internal/key_orders.h"
#include "cairn/cuda/internal/sim_machine.cuh"
#include "cairn/solvers/order/device/caduceus_kernel.h"
#include "cairn/solvers/order/device/key_orders_kernel.h"

namespace cairn::cuda {

sim::KeyOrdersFound search_key_orders(const sim::KeyTree& tree, const sim::KeyOrderOptions& options) {
  std::optional<SimMachine> machine;
  return sim::device::search_key_orders(tree, options,
                                        [&]() -> SimMachine& { return machine ? *machine : machine.emplace(); });
}

sim::CaduceusAnswers solve_caduceus(const sim::CaduceusBatch& batch, sim::CaduceusGoal goal) {
  SimMachine machine;
  return sim::device::solve_caduceus(batch, goal, machine);
}

}  // namespace cairn::cuda
