#pragma once

#include <cstdint>

namespace cairn::runtime::kernels {

/// Describes C = alpha op(A) op(B) + beta C, where op(A) is m x k and op(B) is k x n; row-major, with leading
/// dimensions in elements.
template <class T>
struct Gemm {
  bool trans_a = false, trans_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  T alpha = 1;
  const T* a = nullptr;
  std::int64_t lda = 0;
  const T* b = nullptr;
  std::int64_t ldb = 0;
  T beta = 0;  ///< 0: C is not read
  T* c = nullptr;
  std::int64_t ldc = 0;
};

/// Computes the product on the calling thread.
template <class T>
void gemm(const Gemm<T>& call);

/// Computes the product on the threads of the pool, in blocks of rows or columns of C, whichever are more. The blocks
/// depend on m, n and k alone, so the bits are the same with any number of threads.
template <class T>
void parallel_gemm(const Gemm<T>& call);

}  // namespace cairn::runtime::kernels
