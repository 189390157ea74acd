#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cairn/core/op.h"

namespace cairn::runtime {

/// A dense, row-major tensor that a kernel reads. T is float for execution, or double where tests check gradients by
/// finite differences.
template <class T>
struct TensorRef {
  const void* data = nullptr;  ///< T elements; int32 for ids and labels
  std::span<const std::int64_t> shape;

  const T* values() const { return static_cast<const T*>(data); }
  const std::int32_t* integers() const { return static_cast<const std::int32_t*>(data); }
};

/// Executes one op on the host with core::thread_count() threads. The op must have passed core::check_op. `out` must
/// have room for element_count(op.shape) elements, and `scratch` for at least op_work(op, shapes).scratch / 4 elements.
/// `more` are the outputs beyond the first, with elements of type T, or int32 for indices. `out` may be the storage of
/// argument i if can_overwrite(op.kind, i). `dropout_key` changes which elements dropouts keep (DropoutMask). The bits
/// of the result depend only on the arguments, not on the number of threads. Allocates nothing. Throws core::Error,
/// which names the value, if an id or label is out of range.
template <class T>
void run_op(const core::Op& op, std::span<const TensorRef<T>> args, T* out, T* scratch,
            std::span<void* const> more = {}, std::uint64_t dropout_key = 0);

extern template void run_op<float>(const core::Op&, std::span<const TensorRef<float>>, float*, float*,
                                   std::span<void* const>, std::uint64_t);
extern template void run_op<double>(const core::Op&, std::span<const TensorRef<double>>, double*, double*,
                                    std::span<void* const>, std::uint64_t);

/// Starts the threads and allocates the BLAS buffers, so that no later run_op on this thread allocates.
void warm_up_kernels();

}  // namespace cairn::runtime
