#pragma once

#include <cstdint>

namespace cairn::core {

/// Upper limit of sums of sizes, addresses, times or costs. Below it, two sums can be added, and one can be rounded up
/// to an alignment, without overflow.
inline constexpr std::int64_t kSumLimit = std::int64_t{1} << 62;

}  // namespace cairn::core
