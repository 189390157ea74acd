#pragma once

#include <cstdint>
#include <span>

#include "cairn/core/op.h"
#include "cairn/runtime/host/kernels.h"
#include "cairn/runtime/support/extents.h"
#include "cairn/runtime/support/loops.h"

/// This file has the parts that all files with kernels share. A kernel is a function with the name of its core::OpKind.
/// The file that defines the kernel instantiates it for float and double.
namespace cairn::runtime::kernels {

/// The argument of every kernel, for one execution of an op that core::check_op() has accepted.
template <class T>
struct Call {
  const core::Op& op;
  std::span<const TensorRef<T>> args;
  T* out;
  T* scratch;
  std::span<void* const> more = {};  ///< outputs beyond the first; their elements are T, or int32 for indices
  std::uint64_t dropout_key = 0;     ///< key of dropouts, see DropoutMask

  const core::OpAttrs& attrs() const { return op.attrs; }
  const T* arg(std::size_t i) const { return args[i].values(); }
  /// Returns the elements of an argument that the op overwrites (core::updated_args).
  T* updated(std::size_t i) const { return const_cast<T*>(args[i].values()); }
  std::span<const std::int64_t> shape(std::size_t i) const { return args[i].shape; }
};

}  // namespace cairn::runtime::kernels

#define CAIRN_INSTANTIATE_KERNEL(kernel)    \
  template void kernel(const Call<float>&); \
  template void kernel(const Call<double>&)
