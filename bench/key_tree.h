#pragma once

#include <cstdint>

#include "cairn/solvers/order/device/key_orders.h"
#include "cairn/tests/solvers/order/key_trees.h"

namespace cairn::bench {

/// Returns a random key tree (solvers::KeyTree) with `readers` readers of the source. The same number always gives the
/// same tree.
inline solvers::KeyTree key_tree(int readers) {
  tests::Random random(static_cast<std::uint64_t>(readers));
  return tests::random_key_tree(random, readers, readers - 2, 3);
}

}  // namespace cairn::bench
