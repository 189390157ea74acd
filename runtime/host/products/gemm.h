#pragma once

#include <cstdint>

namespace cairn::runtime::kernels {

/// A product C = alpha op(A) op(B) + beta C, where op(A) is m x k and op(B) is k x n. Matrices are row-major. lda, ldb
/// and ldc are the distances between successive rows, in elements.
template <class T>
struct Gemm {
  bool trans_a = false, trans_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  T alpha = 1;
  const T* a = nullptr;
  std::int64_t lda = 0;
  const T* b = nullptr;
  std::int64_t ldb = 0;
  T beta = 0;  ///< if 0, C is not read
  T* c = nullptr;
  std::int64_t ldc = 0;
};

/// Computes the product on the calling thread.
template <class T>
void gemm(const Gemm<T>& call);

/// Computes the product on the threads of the pool. C is divided into blocks of rows, or into blocks of columns if C
/// has more columns than rows. The blocks depend only on m, n and k, so the bits are the same with any number of
/// threads.
template <class T>
void parallel_gemm(const Gemm<T>& call);

}  // namespace cairn::runtime::kernels
