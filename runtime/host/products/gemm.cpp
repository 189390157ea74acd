#include "cairn/runtime/host/products/gemm.h"

#include <algorithm>
#include <array>

#include "cairn/runtime/host/kernels.h"
#include "cairn/runtime/host/products/blas.h"
#include "cairn/runtime/host/vectors.h"
#include "cairn/runtime/support/loops.h"

namespace cairn::runtime::kernels {
namespace {

// Makes BLAS use one thread on the calling thread. This file divides products among threads itself; the division in
// BLAS, and therefore the rounding, would depend on the number of threads. An OpenBLAS that is built with OpenMP has a
// separate setting for each calling thread, so every thread of the pool must make the setting. Otherwise, OpenBLAS
// would start a team of threads for each block, and waiting threads of the team would keep cores busy.
void keep_blas_single_threaded() {
  thread_local const bool done = [] {
    if (blas().set_threads != nullptr) blas().set_threads(1);
    return true;
  }();
  static_cast<void>(done);
}

// On CPUs with AVX-512, OpenBLAS computes products of at most this many multiplications with kernels that call malloc.
// Nothing may be allocated while a step runs, so this file computes these products itself, without BLAS.
constexpr double kSmallProduct = 1e6;

template <class T>
bool is_small(const Gemm<T>& g) {
  return static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) <= kSmallProduct;
}

/// Returns the sum of a[i * stride] * b[i] over all i < k, with eight interleaved partial sums that the compiler can
/// vectorise.
double dot(const double* a, std::int64_t stride, const double* b, std::int64_t k) {
  constexpr std::int64_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[static_cast<std::size_t>(lane)] += a[(i + lane) * stride] * b[i + lane];
    }
  }
  double total = 0;
  for (const double lane : lanes) total += lane;
  for (; i < k; ++i) total += a[i * stride] * b[i];
  return total;
}

void small_product(const Gemm<float>& g) { vectors::product(g); }

void small_product(const Gemm<double>& g) {
  const std::int64_t stride = g.trans_a ? g.lda : 1;  // distance between the elements of a row of op(A)
  for (std::int64_t i = 0; i < g.m; ++i) {
    const double* a = g.a + (g.trans_a ? i : i * g.lda);
    double* __restrict c = g.c + i * g.ldc;
    for (std::int64_t j = 0; j < g.n; ++j) c[j] = g.beta == 0.0 ? 0.0 : g.beta * c[j];
    if (g.trans_b) {
      for (std::int64_t j = 0; j < g.n; ++j) c[j] += g.alpha * dot(a, stride, g.b + j * g.ldb, g.k);
      continue;
    }
    for (std::int64_t k = 0; k < g.k; ++k) {
      const double scaled = g.alpha * a[k * stride];
      const double* b = g.b + k * g.ldb;
      for (std::int64_t j = 0; j < g.n; ++j) c[j] += scaled * b[j];
    }
  }
}

CBLAS_TRANSPOSE transpose(bool trans) { return trans ? CblasTrans : CblasNoTrans; }
blasint extent(std::int64_t value) { return static_cast<blasint>(value); }

void large_product(const Gemm<float>& g) {
  blas().sgemm(CblasRowMajor, transpose(g.trans_a), transpose(g.trans_b), extent(g.m), extent(g.n), extent(g.k),
               g.alpha, g.a, extent(g.lda), g.b, extent(g.ldb), g.beta, g.c, extent(g.ldc));
}
void large_product(const Gemm<double>& g) {
  blas().dgemm(CblasRowMajor, transpose(g.trans_a), transpose(g.trans_b), extent(g.m), extent(g.n), extent(g.k),
               g.alpha, g.a, extent(g.lda), g.b, extent(g.ldb), g.beta, g.c, extent(g.ldc));
}

// Returns the number of rows in a block if C is divided into blocks of rows. C has `split` rows of `other` elements,
// and each element is a sum of k products. (If C is divided into blocks of columns, rows and columns change roles
// here.) There are at most 16 blocks. A block has at least about a million multiplications. It also has at least 256
// rows, because the work on each block includes a copy of all of B.
std::int64_t block_extent(std::int64_t split, std::int64_t other, std::int64_t k) {
  constexpr std::int64_t kMaxBlocks = 16;
  constexpr std::int64_t kMinExtent = 256;
  constexpr double kMinWork = 1 << 20;
  const double work_per_line = static_cast<double>(other) * static_cast<double>(k);
  const auto worthwhile = static_cast<std::int64_t>(std::min(kMinWork / work_per_line, 0x1p30)) + 1;
  const std::int64_t block = std::max({(split + kMaxBlocks - 1) / kMaxBlocks, worthwhile, kMinExtent});
  return (block + kMinExtent - 1) / kMinExtent * kMinExtent;
}

}  // namespace

template <class T>
void gemm(const Gemm<T>& call) {
  if (is_small(call)) return small_product(call);
  keep_blas_single_threaded();
  large_product(call);
}

template <class T>
void parallel_gemm(const Gemm<T>& call) {
  if (call.m >= call.n) {
    for_blocks(call.m, block_extent(call.m, call.n, call.k), [&](std::int64_t begin, std::int64_t end) {
      Gemm<T> part = call;
      part.m = end - begin;
      part.a += call.trans_a ? begin : begin * call.lda;
      part.c += begin * call.ldc;
      gemm(part);
    });
  } else {
    for_blocks(call.n, block_extent(call.n, call.m, call.k), [&](std::int64_t begin, std::int64_t end) {
      Gemm<T> part = call;
      part.n = end - begin;
      part.b += call.trans_b ? begin * call.ldb : begin;
      part.c += begin;
      gemm(part);
    });
  }
}

template void gemm(const Gemm<float>&);
template void gemm(const Gemm<double>&);
template void parallel_gemm(const Gemm<float>&);
template void parallel_gemm(const Gemm<double>&);

}  // namespace cairn::runtime::kernels

namespace cairn::runtime {

void warm_up_kernels() {
  // Number of rows and columns of a square matrix. The product of two such matrices is too large for small_product(),
  // so BLAS computes it and allocates its buffers.
  constexpr std::int64_t kSide = 104;
  static const std::array<float, kSide * kSide> zeros{};
  require_blas_buffers(core::thread_count());
  core::on_every_thread([] {
    std::array<float, kSide * kSide> c;
    kernels::gemm<float>({.m = kSide,
                          .n = kSide,
                          .k = kSide,
                          .a = zeros.data(),
                          .lda = kSide,
                          .b = zeros.data(),
                          .ldb = kSide,
                          .c = c.data(),
                          .ldc = kSide});
  });
}

}  // namespace cairn::runtime
