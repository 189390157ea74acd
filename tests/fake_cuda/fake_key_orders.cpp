// The search that cuda/ runs on a device, with the launches that a device would get.
#include "cuda/internal/key_orders.h"
#include "sim/device/key_orders.h"
#include "tests/support/fiber_machine.h"

namespace cairn::cuda {

sim::KeyOrdersFound search_key_orders(const sim::KeyTree& tree, const sim::KeyOrderOptions& options) {
  tests::FiberMachine machine;
  return sim::device::search_key_orders(tree, options, [&]() -> tests::FiberMachine& { return machine; });
}

}  // namespace cairn::cuda
