#pragma once

#include "core/op.h"
#include "runtime/kernels.h"

namespace cairn::runtime::kernels {

/// One execution of a checked op: what every kernel gets.
template <class T>
struct Call {
  const core::Op& op;
  std::span<const TensorRef<T>> args;
  T* out;
  T* scratch;

  const core::OpAttrs& attrs() const { return op.attrs; }
  const T* arg(std::size_t i) const { return args[i].values(); }
  std::span<const std::int64_t> shape(std::size_t i) const { return args[i].shape; }
};

using Extents = std::span<const std::int64_t>;

inline std::int64_t elements(Extents shape) {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}
inline std::int64_t last_extent(Extents shape) { return shape.empty() ? 1 : shape.back(); }
inline std::int64_t row_count(Extents shape) { return elements(shape) / last_extent(shape); }

}  // namespace cairn::runtime::kernels

/// Instantiates a kernel of families.h for both element types.
#define CAIRN_INSTANTIATE_KERNEL(kernel)    \
  template void kernel(const Call<float>&); \
  template void kernel(const Call<double>&)
