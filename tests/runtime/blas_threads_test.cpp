// Tests that every thread sets OpenBLAS's number of threads to one before it computes products. If OpenBLAS is built on
// OpenMP, each thread has this setting for itself. Without the setting, every product would start a team of spinning
// threads.
#include <atomic>

#include "cairn/core/machine/support/thread_pool.h"
#include "cairn/runtime/host/products/blas.h"
#include "cairn/runtime/host/products/gemm.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/tensors.h"

namespace cairn::tests::blas_threads_test {
namespace {

thread_local bool alone = false;
std::atomic<long> products{0}, products_of_teams{0};
runtime::Blas library;  ///< the library's own functions, which the replacements below call

void set_threads(int threads) {
  alone = threads == 1;
  if (library.set_threads != nullptr) library.set_threads(threads);
}

void sgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE trans_a, CBLAS_TRANSPOSE trans_b, blasint m, blasint n, blasint k,
           float alpha, const float* a, blasint lda, const float* b, blasint ldb, float beta, float* c, blasint ldc) {
  ++(alone ? products : products_of_teams);
  library.sgemm(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/// Replaces the library's functions when the program starts, because each thread calls set_threads() only once.
const bool watched = [] {
  library = runtime::blas();
  runtime::blas().sgemm = sgemm;
  runtime::blas().set_threads = set_threads;
  return true;
}();

}  // namespace

TEST_CASE("every thread that computes a product has told BLAS that it is alone") {
  constexpr std::int64_t kSide = 512;
  const std::vector<float> a(kSide * kSide, 1), b(kSide * kSide, 2);
  std::vector<float> c(kSide * kSide);
  REQUIRE(watched);
  const long before = products;
  core::set_thread_count(4);
  for (int i = 0; i < 5; ++i) {
    runtime::kernels::parallel_gemm<float>({.m = kSide,
                                            .n = kSide,
                                            .k = kSide,
                                            .a = a.data(),
                                            .lda = kSide,
                                            .b = b.data(),
                                            .ldb = kSide,
                                            .c = c.data(),
                                            .ldc = kSide});
  }
  core::set_thread_count(0);
  CHECK(c.front() == 2 * kSide);
  CHECK(products > before);
  CHECK(products_of_teams == 0);
}

}  // namespace cairn::tests::blas_threads_test
