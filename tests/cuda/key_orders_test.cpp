#include "cairn/solvers/order/device/key_orders.h"

#include "cairn/cuda/support/accelerator.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cuda/no_device.h"
#include "cairn/tests/solvers/order/key_trees.h"

namespace cairn::tests::key_orders_test {
namespace {

void check_trees(int most_readers) {
  const auto device = cuda::make_accelerator();
  Random random(1);
  core::HostMachine host;
  for (int readers = 1; readers <= most_readers; ++readers) {
    for (const std::int64_t width : {1, 64, 1 << 13}) {
      INFO(readers << " readers, width " << width);
      const solvers::KeyTree tree = random_key_tree(random, readers, readers / 2, 3);
      solvers::KeyOrderOptions options{.least_width = width, .least_batch = width == 1 ? 4096 : 0};
      const solvers::KeyOrdersFound expected = solvers::search_key_orders(tree, options, host);
      const solvers::KeyOrdersFound found = device->key_orders(tree, options);
      REQUIRE(found.complete);
      CHECK(found.steps == expected.steps);
      CHECK(found.peak == expected.peak);
      CHECK(found.relaxations == expected.relaxations);
      CHECK(found.dominant == expected.dominant);
    }
  }
}

TEST_CASE("key orders on a device: the host's answer however wide the search is") {
  if (no_device()) return;
  check_trees(8);
}

TEST_CASE("key orders on a device: the host's answer on a few small trees", "[sanitize]") {
  if (no_device()) return;
  check_trees(3);
}

}  // namespace
}  // namespace cairn::tests::key_orders_test
