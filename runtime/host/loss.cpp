#include <cstdint>

#include "cairn/runtime/host/families.h"
#include "cairn/runtime/host/integers.h"
#include "cairn/runtime/host/parallel.h"
#include "cairn/runtime/host/softmax.h"

namespace cairn::runtime::kernels {

template <class T>
void cross_entropy(const Call<T>& call) {
  const T* logits = call.arg(0);
  const std::int32_t* labels = call.args[1].integers();
  const std::int64_t cols = last_extent(call.shape(0));
  const std::int64_t rows = row_count(call.shape(0));
  check_range("label", labels, rows, cols);
  const double total = sum_blocks(rows, [=](std::int64_t begin, std::int64_t end) {
    double sum = 0;
    for (std::int64_t r = begin; r < end; ++r) {
      sum += log_sum_exp(logits + r * cols, cols) - static_cast<double>(logits[r * cols + labels[r]]);
    }
    return sum;
  });
  call.out[0] = static_cast<T>(total / static_cast<double>(rows));
}

template <class T>
void cross_entropy_grad(const Call<T>& call) {
  const std::int32_t* labels = call.args[1].integers();
  const std::int64_t cols = last_extent(call.shape(0));
  const std::int64_t rows = row_count(call.shape(0));
  check_range("label", labels, rows, cols);
  for_rows(rows, cols, [&](std::int64_t r) {
    T* out = call.out + r * cols;
    const double sum = exponentials(call.arg(0) + r * cols, cols, out);
    const T factor = static_cast<T>(1 / (sum * static_cast<double>(rows)));
    for (std::int64_t c = 0; c < cols; ++c) out[c] *= factor;
    out[labels[r]] -= T(1) / static_cast<T>(rows);
  });
}

template <class T>
void mse(const Call<T>& call) {
  const T* y = call.arg(0);
  const T* target = call.arg(1);
  const std::int64_t count = elements(call.shape(0));
  const double total = sum_blocks(count, [=](std::int64_t begin, std::int64_t end) {
    return sum_lanes(end - begin, [=](std::int64_t i) {
      const double d = static_cast<double>(y[begin + i]) - static_cast<double>(target[begin + i]);
      return d * d;
    });
  });
  call.out[0] = static_cast<T>(total / static_cast<double>(count));
}

template <class T>
void mse_grad(const Call<T>& call) {
  const T* y = call.arg(0);
  const T* target = call.arg(1);
  T* out = call.out;
  const std::int64_t count = elements(call.shape(0));
  const T factor = static_cast<T>(2 / static_cast<double>(count));
  for_elements(count, [=](std::int64_t i) { out[i] = factor * (y[i] - target[i]); });
}

CAIRN_INSTANTIATE_KERNEL(cross_entropy);
CAIRN_INSTANTIATE_KERNEL(cross_entropy_grad);
CAIRN_INSTANTIATE_KERNEL(mse);
CAIRN_INSTANTIATE_KERNEL(mse_grad);

}  // namespace cairn::runtime::kernels
