#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "cairn/core/error.h"

namespace cairn::runtime::kernels {

/// Throws core::Error on the first of `count` integers that is not in [0, limit).
inline void check_range(std::string_view what, const std::int32_t* values, std::int64_t count, std::int64_t limit) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (values[i] < 0 || values[i] >= limit) {
      throw core::Error(fmt::format("{} {} at position {} is outside 0 to {}", what, values[i], i, limit - 1));
    }
  }
}

}  // namespace cairn::runtime::kernels
