#include "cairn/solvers/order/device/pumpkin.h"

#include "cairn/cuda/support/accelerator.h"
#include "cairn/solvers/common/support/accelerator.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cuda/no_device.h"
#include "cairn/tests/solvers/order/pumpkin_cases.h"

namespace cairn::tests::pumpkin_test {
namespace {

using solvers::PumpkinAnswer;
using End = PumpkinAnswer::End;

PumpkinAnswer on_host(const solvers::PumpkinProblem& problem) {
  return solvers::solve_pumpkin(core::HostMachine(), problem, {});
}

TEST_CASE("pumpkin on a device: the host's answer for up to 18 branches of 16 nodes") {
  if (no_device()) return;
  const auto device = cuda::make_accelerator();
  CHECK_FALSE(device->device().empty());
  Random random(1);
  for (std::int64_t branches = 1; branches <= 18; ++branches) {
    INFO(branches);
    const solvers::PumpkinProblem problem = pumpkin_of_chains(random, branches, 16);
    const PumpkinAnswer answer = device->pumpkin(problem, {});
    REQUIRE(answer.end == End::solved);
    CHECK(answer == on_host(problem));
  }
}

/// Compares the device's answers with the host's on random small pumpkins, i.e. parallel branches between a source and
/// a sink. These have many ties and equal branches.
void check_small(int pumpkins) {
  const auto device = cuda::make_accelerator();
  Random random(2);
  for (int i = 0; i < pumpkins; ++i) {
    PumpkinShape shape{.kinds = random.between(1, 6),
                       .copies = random.between(1, 3),
                       .length = random.between(0, 12),
                       .bytes = random.pick(std::vector<std::int64_t>{1, 2, 5, 40, 1000})};
    // In a third of the cases, numbers need more than 32 bits. They do not fit into a NarrowTable, so a WideTable is
    // used.
    if (i % 3 == 2) shape.bytes = std::int64_t{1} << 40;
    const solvers::PumpkinProblem problem = random_pumpkin(random, shape);
    solvers::PumpkinOptions options{.chunk = random.between(1, 1000), .go_on = [](std::int64_t) { return true; }};
    INFO(i);
    CHECK(device->pumpkin(problem, options) == on_host(problem));
  }
}

TEST_CASE("pumpkin on a device: the host's answer on small pumpkins full of ties and equal branches") {
  if (no_device()) return;
  check_small(300);
}

TEST_CASE("pumpkin on a device: the host's answer on a few small pumpkins", "[sanitize]") {
  if (no_device()) return;
  check_small(10);
}

TEST_CASE("pumpkin on a device: it stops and it keeps to its memory") {
  if (no_device()) return;
  const auto device = cuda::make_accelerator();
  Random random(3);
  const solvers::PumpkinProblem problem = pumpkin_of_chains(random, 14, 16);
  solvers::PumpkinOptions options{.chunk = 256};
  int calls = 0;
  options.go_on = [&](std::int64_t) { return ++calls < 20; };
  CHECK(device->pumpkin(problem, options).end == End::stopped);
  CHECK(calls == 20);
  options = {};
  options.memory_bytes = on_host(problem).bytes / 2;
  const PumpkinAnswer none = device->pumpkin(problem, options);
  CHECK(none.end == End::too_large);
  CHECK(none.bytes > options.memory_bytes);
}

}  // namespace
}  // namespace cairn::tests::pumpkin_test
