#pragma once

#include <cstdint>

#include "cairn/core/host_device.h"

namespace cairn::core {

/// Returns a + b, or the largest int64 if the sum exceeds it. Both a and b must be >= 0. The costs of all nodes can add
/// up to 2^62, so the cost of a schedule that runs nodes again can exceed 2^63.
CAIRN_HD inline std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  const std::uint64_t sum = static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b);
  return sum >> 63 != 0 ? INT64_MAX : static_cast<std::int64_t>(sum);
}

/// Returns a * b, or the largest int64 if the product exceeds it. Both a and b must be >= 0.
inline std::int64_t saturating_mul(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

}  // namespace cairn::core
