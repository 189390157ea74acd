#pragma once

#include <cstdint>

#include "cairn/core/support/random.h"
#include "cairn/tests/solvers/order/pumpkin_cases.h"

namespace cairn::bench {

/// Returns a problem of `branches` parallel chains of `nodes` nodes each. The outputs of nodes have random sizes of 1
/// to 2^20 bytes.
inline solvers::PumpkinProblem chains(std::int64_t branches, std::int64_t nodes, std::uint64_t seed) {
  core::Random random(seed);
  return tests::pumpkin_of_sizes(
      [&] { return static_cast<std::int64_t>(random.next() % (std::uint64_t{1} << 20)) + 1; }, branches, nodes);
}

}  // namespace cairn::bench
