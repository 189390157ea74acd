// Which threads have told OpenBLAS that they compute alone: one built on OpenMP asks for each thread anew, and starts a
// team of spinning threads for every product of one that has not. Calls of BLAS come by here on their way.
#include <cblas.h>
#include <dlfcn.h>

#include <atomic>

#include "cairn/core/machine/thread_pool.h"
#include "cairn/runtime/host/gemm.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/tensors.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {
thread_local bool alone = false;
std::atomic<long> products{0}, products_of_teams{0};
}  // namespace

extern "C" {
void openblas_set_num_threads(int threads) {
  static const auto next = reinterpret_cast<void (*)(int)>(dlsym(RTLD_NEXT, "openblas_set_num_threads"));
  alone = threads == 1;
  next(threads);
}

void cblas_sgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE trans_a, CBLAS_TRANSPOSE trans_b, blasint m, blasint n, blasint k,
                 float alpha, const float* a, blasint lda, const float* b, blasint ldb, float beta, float* c,
                 blasint ldc) {
  static const auto next = reinterpret_cast<decltype(&cblas_sgemm)>(dlsym(RTLD_NEXT, "cblas_sgemm"));
  ++(alone ? products : products_of_teams);
  next(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
}

namespace cairn::tests {

TEST_CASE("every thread that computes a product has told BLAS that it is alone") {
  constexpr std::int64_t kSide = 512;
  const std::vector<float> a(kSide * kSide, 1), b(kSide * kSide, 2);
  std::vector<float> c(kSide * kSide);
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

}  // namespace cairn::tests

#endif
