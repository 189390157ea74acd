#include "cairn/runtime/host/softmax.h"

#include "cairn/runtime/host/families.h"
#include "cairn/runtime/host/parallel.h"

namespace cairn::runtime::kernels {

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

CAIRN_INSTANTIATE_KERNEL(softmax);
CAIRN_INSTANTIATE_KERNEL(softmax_grad);

}  // namespace cairn::runtime::kernels
