#include "cairn/solvers/order/device/key_orders.h"

#include "cairn/cuda/accelerator.h"
#include "cairn/cuda/internal/order.h"
#include "cairn/solvers/order/device/accelerator.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cuda/no_device.h"
#include "cairn/tests/solvers/key_trees.h"

namespace cairn::cuda {
namespace {

TEST_CASE("key orders on a device: the host's answer however wide the search is") {
  if (tests::no_device()) return;
  const auto device = make_accelerator();
  tests::Random random(1);
  core::HostMachine host;
  for (int readers = 1; readers <= 8; ++readers) {
    for (const std::int64_t width : {1, 64, 1 << 13}) {
      INFO(readers << " readers, width " << width);
      const solvers::KeyTree tree = tests::random_key_tree(random, readers, readers / 2, 3);
      solvers::KeyOrderOptions options;
      options.least_width = width;
      options.least_batch = width == 1 ? 4096 : 0;
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

TEST_CASE("caduceus graphs on a device: the host's answers") {
  if (tests::no_device()) return;
  tests::Random random(2);
  solvers::CaduceusBatch batch;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<core::Segment> segments(static_cast<std::size_t>(random.between(0, 10)));
    for (core::Segment& segment : segments) segment = {random.between(0, 30), random.between(0, 30)};
    const auto staff = static_cast<std::int64_t>(segments.size());
    batch.add_graph(segments);
    for (std::int64_t bends = random.between(0, 10); bends > 0; --bends) {
      std::vector<core::Segment> chain;
      for (std::int64_t k = random.between(0, 5); k > 0; --k) {
        core::append_segment(chain, {random.between(0, 30), random.between(0, 30)});
      }
      const std::int64_t first = random.between(0, staff);
      batch.add_bend(static_cast<std::int32_t>(first), static_cast<std::int32_t>(random.between(first, staff)), chain);
    }
  }
  core::HostMachine host;
  for (const solvers::CaduceusGoal goal : {solvers::CaduceusGoal::least_peak, solvers::CaduceusGoal::dominant}) {
    const solvers::CaduceusAnswers expected = solvers::solve_caduceus(batch, goal, host);
    const solvers::CaduceusAnswers found = solve_caduceus(batch, goal);
    CHECK(found.peaks == expected.peaks);
    CHECK(found.orders == expected.orders);
  }
}

}  // namespace
}  // namespace cairn::cuda
