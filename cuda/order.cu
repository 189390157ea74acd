#include <algorithm>
#include <optional>

#include "cairn/cuda/internal/machine.cuh"
#include "cairn/cuda/internal/order.h"
#include "cairn/solvers/order/device/key_orders_kernel.h"
#include "cairn/solvers/order/device/pumpkin_kernel.h"

namespace cairn::cuda {

solvers::PumpkinAnswer solve_pumpkin(const solvers::PumpkinProblem& problem, const solvers::PumpkinOptions& options,
                                     int ordinal) {
  // Bytes of free device memory that the search must not use: CUB's algorithms and the rounding of allocations need
  // them.
  constexpr std::int64_t kSpared = std::int64_t{64} << 20;
  const OnDevice on(ordinal);
  Machine machine;
  solvers::PumpkinOptions within = options;
  within.memory_bytes = std::min(options.memory_bytes, machine.free_bytes() - kSpared);
  return solvers::solve_pumpkin(machine, problem, within);
}

solvers::KeyOrdersFound search_key_orders(const solvers::KeyTree& tree, const solvers::KeyOrderOptions& options,
                                          int ordinal) {
  const OnDevice on(ordinal);
  std::optional<Machine> machine;
  return solvers::search_key_orders(tree, options,
                                    [&]() -> Machine& { return machine ? *machine : machine.emplace(); });
}

}  // namespace cairn::cuda
