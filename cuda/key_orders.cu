#include <optional>

#include "cuda/internal/key_orders.h"
#include "cuda/internal/sim_machine.cuh"
#include "sim/device/caduceus.h"
#include "sim/device/key_orders.h"

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
