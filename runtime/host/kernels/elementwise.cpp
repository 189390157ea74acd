#include <type_traits>

#include "cairn/runtime/host/kernels/call.h"
#include "cairn/runtime/host/vectors.h"
#include "cairn/runtime/support/element.h"

namespace cairn::runtime::kernels {
namespace {

template <class T, class F>
void map(const Call<T>& call, const F& formula) {
  const T* x = call.arg(0);
  T* out = call.out;
  for_elements(elements(call.op.shape), [=](std::int64_t i) { out[i] = formula(x[i]); });
}

template <class T, class F>
void map2(const Call<T>& call, const F& formula) {
  const T* a = call.arg(0);
  const T* b = call.arg(1);
  T* out = call.out;
  for_elements(elements(call.op.shape), [=](std::int64_t i) { out[i] = formula(a[i], b[i]); });
}

}  // namespace

template <class T>
void add(const Call<T>& call) {
  map2(call, [](T a, T b) { return a + b; });
}

template <class T>
void scale(const Call<T>& call) {
  map(call, [alpha = static_cast<T>(call.attrs().alpha)](T x) { return alpha * x; });
}

template <class T>
void relu(const Call<T>& call) {
  map(call, [](T x) { return runtime::relu(x); });
}

template <class T>
void relu_grad(const Call<T>& call) {
  map2(call, [](T dy, T y) { return runtime::relu_grad(dy, y); });
}

template <class T>
void gelu(const Call<T>& call) {
  if constexpr (std::is_same_v<T, float>) {
    for_blocks(elements(call.op.shape), kElementBlock, [&](std::int64_t begin, std::int64_t end) {
      vectors::gelu(call.arg(0) + begin, call.out + begin, end - begin);
    });
  } else {
    map(call, [](T x) { return runtime::gelu(x); });
  }
}

template <class T>
void gelu_grad(const Call<T>& call) {
  if constexpr (std::is_same_v<T, float>) {
    for_blocks(elements(call.op.shape), kElementBlock, [&](std::int64_t begin, std::int64_t end) {
      vectors::gelu_grad(call.arg(0) + begin, call.arg(1) + begin, call.out + begin, end - begin);
    });
  } else {
    map2(call, [](T dy, T x) { return runtime::gelu_grad(dy, x); });
  }
}

template <class T>
void dropout(const Call<T>& call) {
  const core::OpAttrs& a = call.attrs();
  const T* x = call.arg(0);
  T* out = call.out;
  const auto factor = static_cast<T>(1 / (1 - a.p));
  const DropoutMask mask(a.seed, a.stream, a.p, call.dropout_key);
  for_elements(elements(call.op.shape),
               [=](std::int64_t i) { out[i] = mask.keeps(static_cast<std::uint64_t>(i)) ? x[i] * factor : T(0); });
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

CAIRN_INSTANTIATE_KERNEL(add);
CAIRN_INSTANTIATE_KERNEL(scale);
CAIRN_INSTANTIATE_KERNEL(relu);
CAIRN_INSTANTIATE_KERNEL(relu_grad);
CAIRN_INSTANTIATE_KERNEL(gelu);
CAIRN_INSTANTIATE_KERNEL(gelu_grad);
CAIRN_INSTANTIATE_KERNEL(dropout);
CAIRN_INSTANTIATE_KERNEL(mse);
CAIRN_INSTANTIATE_KERNEL(mse_grad);

}  // namespace cairn::runtime::kernels
