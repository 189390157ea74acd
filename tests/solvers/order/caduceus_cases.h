#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>

#include "cairn/core/graph.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/order/internal/papers/caduceus.h"

namespace cairn::tests {

/// Returns a random caduceus graph (a path called the staff, and `bends` further paths that leave and rejoin it) with
/// `nodes` nodes in all. The staff has `staff` of the nodes. The weights are uniform in [-most, most], and their sum is
/// at least 0.
inline solvers::Caduceus generate_caduceus(core::NodeId nodes, core::NodeId staff, core::NodeId bends,
                                           std::int64_t most, std::uint64_t seed) {
  core::Random random(seed);
  const auto below = [&](std::int64_t count) {
    return static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(count));
  };
  const auto weight = [&] { return below(2 * most + 1) - most; };
  solvers::Caduceus caduceus;
  for (core::NodeId v = 0; v < staff; ++v) caduceus.staff.push_back(weight());
  for (core::NodeId b = 0; b < bends; ++b) {
    const auto from = static_cast<core::NodeId>(below(staff - 1));
    const auto to = static_cast<core::NodeId>(from + 1 + below(staff - 1 - from));
    caduceus.bends.push_back({from, to, {weight()}});
  }
  for (core::NodeId v = staff + bends; v < nodes; ++v) {
    caduceus.bends[static_cast<std::size_t>(below(bends))].weights.push_back(weight());
  }
  // If the sum is negative, all weights are negated, because memory must not end below the level at which it begins.
  std::int64_t total = std::accumulate(caduceus.staff.begin(), caduceus.staff.end(), std::int64_t{0});
  for (const solvers::Caduceus::Bend& bend : caduceus.bends) {
    total = std::accumulate(bend.weights.begin(), bend.weights.end(), total);
  }
  if (total < 0) {
    for (std::int64_t& value : caduceus.staff) value = -value;
    for (solvers::Caduceus::Bend& bend : caduceus.bends) {
      for (std::int64_t& value : bend.weights) value = -value;
    }
  }
  return caduceus;
}

}  // namespace cairn::tests
