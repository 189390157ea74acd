#pragma once

#include "cairn/core/op.h"
#include "cairn/runtime/host/kernels.h"
#include "cairn/runtime/internal/extents.h"

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

}  // namespace cairn::runtime::kernels

/// Instantiates a kernel of families.h for both element types.
#define CAIRN_INSTANTIATE_KERNEL(kernel)    \
  template void kernel(const Call<float>&); \
  template void kernel(const Call<double>&)
