#include "cairn/solvers/common/support/accelerator.h"

#include <cstdint>
#include <stdexcept>
#include <string>

#include "cairn/core/error.h"
#include "cairn/models/random_graphs.h"
#include "cairn/solvers/order/device/key_orders.h"
#include "cairn/solvers/order/device/pumpkin_kernel.h"
#include "cairn/solvers/order/support/order.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/fiber_machine.h"

// Tests which problems the order solvers pass to an Accelerator, i.e. to a device such as a GPU. FiberAccelerator
// simulates such a device on the host.
namespace cairn::solvers::accelerator_test {
namespace {

class FiberAccelerator : public solvers::Accelerator {
 public:
  std::string device() const override { return "fibers"; }
  solvers::PumpkinAnswer pumpkin(const solvers::PumpkinProblem& problem,
                                 const solvers::PumpkinOptions& options) override {
    ++pumpkins;
    solvers::PumpkinOptions within = options;
    within.memory_bytes = memory_bytes;
    tests::FiberMachine machine;
    return solvers::solve_pumpkin(machine, problem, within);
  }
  solvers::KeyOrdersFound key_orders(const solvers::KeyTree&, const solvers::KeyOrderOptions&) override {
    throw std::logic_error("not a part of these tests");
  }

  std::int64_t memory_bytes = std::int64_t{1} << 30;
  int pumpkins = 0;
};

using Solver = Solution (*)(const core::Graph&, const OrderOptions&);

TEST_CASE("accelerator: a large pumpkin has the host's schedule in every solver", "[order]") {
  const core::Graph graph = models::generate_pumpkin(16, 12, {}, 1);
  OrderOptions options;
  options.threads = 1;
  const Solution host = pumpkin(graph, options);
  FiberAccelerator device;
  options.accelerator = &device;
  int called = 0;
  for (const Solver solver : {pumpkin, series_parallel}) {
    const Solution solution = solver(graph, options);
    CHECK(device.pumpkins == ++called);
    CHECK(solution.status == Status::optimal);
    CHECK(solution.schedule.steps == host.schedule.steps);
    CHECK(solution.work == host.work);
  }
  // The host must solve a small problem itself, and also one for which the device reports too little memory.
  pumpkin(models::generate_pumpkin(12, 12, {}, 1), options);
  CHECK(device.pumpkins == called);
  device.memory_bytes = 1 << 18;
  CHECK(pumpkin(graph, options).schedule.steps == host.schedule.steps);
  CHECK(device.pumpkins == called + 1);
}

TEST_CASE("accelerator: a table that the host has no memory for", "[order]") {
  const core::Graph graph = models::generate_pumpkin(17, 16, {}, 2);
  OrderOptions options;
  options.threads = 1;
  const Solution host = pumpkin(graph, options);
  options.memory_bytes = 1 << 18;
  CHECK_THROWS_AS(pumpkin(graph, options), core::InputError);
  FiberAccelerator device;
  options.accelerator = &device;
  CHECK(pumpkin(graph, options).schedule.steps == host.schedule.steps);
  device.memory_bytes = 1 << 18;
  CHECK_THROWS_AS(pumpkin(graph, options), core::InputError);
}

TEST_CASE("accelerator: a limit ends its work", "[order]") {
  const core::Graph graph = models::generate_pumpkin(17, 16, {}, 2);
  FiberAccelerator device;
  OrderOptions options;
  options.threads = 1;
  options.accelerator = &device;
  options.limit.work = 1000;
  const Solution solution = pumpkin(graph, options);
  CHECK(device.pumpkins == 1);
  CHECK(solution.timed_out);
  CHECK(core::reference::valid(graph, solution.schedule));
}

}  // namespace
}  // namespace cairn::solvers::accelerator_test
