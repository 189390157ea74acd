#include <algorithm>
#include <cmath>
#include <cstdint>

#include "cairn/runtime/host/kernels/call.h"
#include "cairn/runtime/host/vectors.h"
#include "cairn/runtime/support/residents.h"

/// These kernels compute softmax and cross entropy, which contains a softmax.
namespace cairn::runtime::kernels {
namespace {

/// Returns the sum of exp(x[c] - shift) over c < cols. Also stores these terms in `out`, unless `out` is nullptr. `out`
/// may be x.
double shifted_exponentials(const float* x, float shift, std::int64_t cols, float* out) {
  return vectors::exponentials(x, shift, out, cols);
}
double shifted_exponentials(const double* x, double shift, std::int64_t cols, double* out) {
  double sum = 0;
  for (std::int64_t c = 0; c < cols; ++c) {
    const double value = std::exp(x[c] - shift);
    if (out != nullptr) out[c] = value;
    sum += value;
  }
  return sum;
}

/// Sets out[c] = exp(x[c] - max x) for c < cols and returns the sum of all out[c]. `cols` must be at least 1. `out` may
/// be x.
template <class T>
double exponentials(const T* x, std::int64_t cols, T* out) {
  return shifted_exponentials(x, *std::max_element(x, x + cols), cols, out);
}

/// Returns the logarithm of the sum of exp(x[c]) over c < cols. `cols` must be at least 1.
template <class T>
double log_sum_exp(const T* x, std::int64_t cols) {
  const T largest = *std::max_element(x, x + cols);
  return std::log(shifted_exponentials(x, largest, cols, static_cast<T*>(nullptr))) + static_cast<double>(largest);
}

}  // namespace

template <class T>
void softmax(const Call<T>& call) {
  const std::int64_t cols = last_extent(call.shape(0));
  for_rows(row_count(call.shape(0)), cols, [&](std::int64_t r) {
    const std::int64_t visible = call.attrs().causal ? r % cols + 1 : cols;
    T* out = call.out + r * cols;
    const double sum = exponentials(call.arg(0) + r * cols, visible, out);
    const T factor = static_cast<T>(1 / sum);
    for (std::int64_t c = 0; c < visible; ++c) out[c] *= factor;
    std::fill(out + visible, out + cols, T(0));
  });
}

template <class T>
void softmax_grad(const Call<T>& call) {
  const std::int64_t cols = last_extent(call.shape(0));
  for_rows(row_count(call.shape(0)), cols, [&](std::int64_t r) {
    const T* dy = call.arg(0) + r * cols;
    const T* y = call.arg(1) + r * cols;
    const T dot = static_cast<T>(sum_lanes(cols, [=](std::int64_t c) { return dy[c] * y[c]; }));
    T* out = call.out + r * cols;
    for (std::int64_t c = 0; c < cols; ++c) out[c] = y[c] * (dy[c] - dot);
  });
}

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

CAIRN_INSTANTIATE_KERNEL(softmax);
CAIRN_INSTANTIATE_KERNEL(softmax_grad);
CAIRN_INSTANTIATE_KERNEL(cross_entropy);
CAIRN_INSTANTIATE_KERNEL(cross_entropy_grad);

}  // namespace cairn::runtime::kernels
