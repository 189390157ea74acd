#include <algorithm>
#include <array>

#include "cairn/runtime/host/kernels/call.h"
#include "cairn/runtime/host/products/gemm.h"

namespace cairn::runtime::kernels {

template <class T>
void matmul(const Call<T>& call) {
  const core::OpAttrs& a = call.attrs();
  const bool has_bias = call.args.size() == 3;
  if (has_bias) {
    const T* bias = call.arg(2);
    for_rows(a.batch * a.m, a.n, [&](std::int64_t r) { std::copy_n(bias, a.n, call.out + r * a.n); });
  }
  const auto product = [&](std::int64_t b) {
    return Gemm<T>{.trans_a = a.trans_a,
                   .trans_b = a.trans_b,
                   .m = a.m,
                   .n = a.n,
                   .k = a.k,
                   .alpha = static_cast<T>(a.alpha),
                   .a = call.arg(0) + b * a.m * a.k,
                   .lda = a.trans_a ? a.m : a.k,
                   .b = call.arg(1) + b * a.k * a.n,
                   .ldb = a.trans_b ? a.k : a.n,
                   .beta = has_bias ? T(1) : T(0),
                   .c = call.out + b * a.m * a.n,
                   .ldc = a.n};
  };
  if (a.batch == 1) return parallel_gemm(product(0));
  for_blocks(a.batch, 1, [&](std::int64_t begin, std::int64_t) { gemm(product(begin)); });
}

template <class T>
void reduce_rows(const Call<T>& call) {
  const std::int64_t rows = call.attrs().rows;
  const std::int64_t cols = call.attrs().cols;
  for_blocks(cols, kColumnBlock, [&](std::int64_t begin, std::int64_t end) {
    std::array<double, kColumnBlock> sum{};
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* x = call.arg(0) + r * cols + begin;
      for (std::int64_t c = 0; c < end - begin; ++c) sum[static_cast<std::size_t>(c)] += static_cast<double>(x[c]);
    }
    for (std::int64_t c = begin; c < end; ++c) call.out[c] = static_cast<T>(sum[static_cast<std::size_t>(c - begin)]);
  });
}

CAIRN_INSTANTIATE_KERNEL(matmul);
CAIRN_INSTANTIATE_KERNEL(reduce_rows);

}  // namespace cairn::runtime::kernels
