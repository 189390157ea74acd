// The search that cuda/ runs on a device, with the launches that a device would get.
#include "cairn/cuda/internal/key_orders.h"
#include "cairn/solvers/order/device/key_orders_kernel.h"
#include "cairn/tests/support/fiber_machine.h"

namespace cairn::cuda {

sim::KeyOrdersFound search_key_orders(const sim::KeyTree& tree, const sim::KeyOrderOptions& options) {
  tests::FiberMachine machine;
  return sim::device::search_key_orders(tree, options, [&]() -> tests::FiberMachine& { return machine; });
}

}  // namespace cairn::cuda
