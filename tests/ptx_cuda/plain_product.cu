// This file takes the place of cuBLASLt in tests with the PTX interpreter. A plain kernel computes matrix products. The
// interpreter runs and checks this kernel like Cairn's own kernels.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cairn/cuda/internal/libraries.h"
#include "cairn/cuda/internal/runtime.h"
#include "cairn/runtime/device/elements.h"
#include "cairn/tests/fake_cuda/fake_products.h"

namespace cairn::cuda {
namespace {

using runtime::device::GemmOperands;
using runtime::device::GemmShape;

constexpr int kThreads = 64;

/// Computes a batch of matrix products. The blocks with the same blockIdx.z compute the product of this number. A
/// thread computes elements of one column of the product: in row blockIdx.y and in every gridDim.y-th row after it. The
/// kernel also overwrites the workspace, because a library may do so. The strides of the shape must be set.
template <class T>
__global__ void plain_product(GemmShape s, GemmOperands o, std::uint8_t* workspace, std::int64_t workspace_bytes) {
  using runtime::device::to_float;
  const std::int64_t column = std::int64_t{blockIdx.x} * kThreads + threadIdx.x, batch = blockIdx.z;
  if (blockIdx.y == 0 && batch == 0) {
    for (std::int64_t i = column; i < workspace_bytes; i += std::int64_t{gridDim.x} * kThreads) workspace[i] = 0xFF;
  }
  if (column >= s.n) return;
  const T* const a = static_cast<const T*>(o.a) + batch * (s.trans_a ? s.k : s.m) * s.lda;
  const T* const b = static_cast<const T*>(o.b) + batch * (s.trans_b ? s.n : s.k) * s.ldb;
  T* const c = static_cast<T*>(o.c) + batch * s.m * s.ldc;
  for (std::int64_t row = blockIdx.y; row < s.m; row += gridDim.y) {
    float sum = 0;
    for (std::int64_t l = 0; l < s.k; ++l) {
      const T left = s.trans_a ? a[l * s.lda + row] : a[row * s.lda + l];
      const T right = s.trans_b ? b[column * s.ldb + l] : b[l * s.ldb + column];
      sum += to_float(left) * to_float(right);
    }
    float value = o.alpha * sum;
    if (s.bias) value += to_float(static_cast<const T*>(o.bias)[column]);
    if (s.accumulate) value += to_float(c[row * s.ldc + column]);
    c[row * s.ldc + column] = runtime::device::from_float<T>(value);
  }
}

}  // namespace

void Gemms::run(const GemmShape& shape, const GemmOperands& operands, void* workspace, cudaStream_t stream) {
  constexpr std::int64_t kMostRows = 65'535;  // largest gridDim.y of CUDA
  tests::fake::require_aligned(operands, workspace);
  const dim3 grid(static_cast<unsigned>((shape.n + kThreads - 1) / kThreads),
                  static_cast<unsigned>(std::min(shape.m, kMostRows)), static_cast<unsigned>(shape.batch));
  GemmShape s = shape;
  s.lda = shape.stride_of_a();
  s.ldb = shape.stride_of_b();
  s.ldc = shape.stride_of_c();
  const std::int64_t bytes = this->workspace(shape);
  auto* const scratch = static_cast<std::uint8_t*>(workspace);
  if (shape.type == core::ElementType::bf16) {
    plain_product<core::Bf16><<<grid, kThreads, 0, stream>>>(s, operands, scratch, bytes);
  } else {
    plain_product<float><<<grid, kThreads, 0, stream>>>(s, operands, scratch, bytes);
  }
  check(cudaPeekAtLastError(), "launch of a product");
}

}  // namespace cairn::cuda
