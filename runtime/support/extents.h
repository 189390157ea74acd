#pragma once

#include <cstdint>
#include <span>

/// This file has functions on a tensor's shape, as kernels use it. A row consists of the elements along the last axis.
/// The product of all extents but the last is the number of rows.
namespace cairn::runtime {

using Extents = std::span<const std::int64_t>;

inline std::int64_t elements(Extents shape) {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}
inline std::int64_t last_extent(Extents shape) { return shape.empty() ? 1 : shape.back(); }
inline std::int64_t row_count(Extents shape) { return elements(shape) / last_extent(shape); }

}  // namespace cairn::runtime
