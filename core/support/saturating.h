#pragma once

#include <cstdint>

#include "cairn/core/host_device.h"

namespace cairn::core {

/// Returns a + b, both >= 0, or the largest int64 if the sum exceeds it. Costs add up to 2^62 in one run of all nodes,
/// and nodes may run again.
CAIRN_HD inline std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  const std::uint64_t sum = static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b);
  return sum >> 63 != 0 ? INT64_MAX : static_cast<std::int64_t>(sum);
}

}  // namespace cairn::core
