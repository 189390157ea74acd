#pragma once

#include <cstdint>

namespace cairn::core::formats {

/// Limit on sums of bytes or of times in a file. The sum of two such numbers does not overflow.
inline constexpr std::int64_t kBytesLimit = std::int64_t{1} << 62;

}  // namespace cairn::core::formats
