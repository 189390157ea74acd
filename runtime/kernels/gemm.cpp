#include "runtime/kernels/internal/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <array>

#include "runtime/kernels.h"
#include "runtime/kernels/internal/parallel.h"

namespace cairn::runtime::kernels {
namespace {

// We cut products ourselves, so BLAS must not: its own cut depends on the number of threads.
void keep_blas_single_threaded() {
  static const bool done = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  static_cast<void>(done);
}

CBLAS_TRANSPOSE transpose(bool trans) { return trans ? CblasTrans : CblasNoTrans; }
blasint extent(std::int64_t value) { return static_cast<blasint>(value); }

void blas(const Gemm<float>& g) {
  cblas_sgemm(CblasRowMajor, transpose(g.trans_a), transpose(g.trans_b), extent(g.m), extent(g.n), extent(g.k), g.alpha,
              g.a, extent(g.lda), g.b, extent(g.ldb), g.beta, g.c, extent(g.ldc));
}
void blas(const Gemm<double>& g) {
  cblas_dgemm(CblasRowMajor, transpose(g.trans_a), transpose(g.trans_b), extent(g.m), extent(g.n), extent(g.k), g.alpha,
              g.a, extent(g.lda), g.b, extent(g.ldb), g.beta, g.c, extent(g.ldc));
}

// Rows (or columns) of one block: at most 16 blocks, none narrower than 32 nor below about a million multiplications.
std::int64_t block_extent(std::int64_t split, std::int64_t other, std::int64_t k) {
  constexpr std::int64_t kMaxBlocks = 16;
  constexpr std::int64_t kMinExtent = 32;
  constexpr double kMinWork = 1 << 20;
  const double work_per_line = static_cast<double>(other) * static_cast<double>(k);
  const auto worthwhile = static_cast<std::int64_t>(std::min(kMinWork / work_per_line, 0x1p30)) + 1;
  const std::int64_t block = std::max({(split + kMaxBlocks - 1) / kMaxBlocks, worthwhile, kMinExtent});
  return (block + kMinExtent - 1) / kMinExtent * kMinExtent;
}

}  // namespace

template <class T>
void gemm(const Gemm<T>& call) {
  keep_blas_single_threaded();
  blas(call);
}

template <class T>
void parallel_gemm(const Gemm<T>& call) {
  keep_blas_single_threaded();
  if (call.m >= call.n) {
    for_blocks(call.m, block_extent(call.m, call.n, call.k), [&](std::int64_t begin, std::int64_t end) {
      Gemm<T> part = call;
      part.m = end - begin;
      part.a += call.trans_a ? begin : begin * call.lda;
      part.c += begin * call.ldc;
      blas(part);
    });
  } else {
    for_blocks(call.n, block_extent(call.n, call.m, call.k), [&](std::int64_t begin, std::int64_t end) {
      Gemm<T> part = call;
      part.n = end - begin;
      part.b += call.trans_b ? begin * call.ldb : begin;
      part.c += begin;
      blas(part);
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
  constexpr std::int64_t kSide = 64;
  static const std::array<float, kSide * kSide> zeros{};
  kernels::keep_blas_single_threaded();
#pragma omp parallel
  {
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
  }
}

}  // namespace cairn::runtime
