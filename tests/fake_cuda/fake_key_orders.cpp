// The search that cuda/ runs on a device, with the launches that a device would get.
#include "cairn/cuda/internal/key_orders.h"
#include "cairn/solvers/order/device/key_orders_kernel.h"
#include "cairn/tests/support/fiber_machine.h"

namespace cairn::cuda {

solvers::KeyOrdersFound search_key_orders(const solvers::KeyTree& tree, const solvers::KeyOrderOptions& options) {
  tests::FiberMachine machine;
  return solvers::device::search_key_orders(tree, options, [&]() -> tests::FiberMachine& { return machine; });
}

}  // namespace cairn::cuda
