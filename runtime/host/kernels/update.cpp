#include <cmath>

#include "cairn/runtime/host/kernels/call.h"
#include "cairn/runtime/support/element.h"

namespace cairn::runtime::kernels {
namespace {

/// Returns the element of argument i, which must have one element.
template <class T>
T number(const Call<T>& call, std::size_t i) {
  return *call.arg(i);
}

/// Returns the factor by which gradients are multiplied to limit their norm, or 1 if the op has no argument number
/// `norm`. That argument holds the sum of the squares of all gradients.
template <class T>
T clip_of(const Call<T>& call, std::size_t norm) {
  if (call.args.size() <= norm) return T(1);
  return clip_factor(number(call, norm), static_cast<T>(call.attrs().limit));
}

}  // namespace

template <class T>
void sum_of_squares(const Call<T>& call) {
  const T* x = call.arg(0);
  const double total = sum_blocks(elements(call.shape(0)), [=](std::int64_t begin, std::int64_t end) {
    return sum_lanes(end - begin, [=](std::int64_t i) {
      const auto value = static_cast<double>(x[begin + i]);
      return value * value;
    });
  });
  const double before = call.args.size() > 1 ? static_cast<double>(number(call, 1)) : 0;
  call.out[0] = static_cast<T>(before + total);
}

template <class T>
void sgd(const Call<T>& call) {
  const core::OpAttrs& a = call.attrs();
  const SgdRule<T> rule{static_cast<T>(a.beta1), static_cast<T>(a.decay), number(call, 3), clip_of(call, 4)};
  const T* gradient = call.arg(0);
  T* weight = call.updated(1);
  T* m = call.updated(2);
  T* out = call.out;
  for_elements(elements(call.op.shape),
               [=](std::int64_t i) { out[i] = weight[i] = rule(gradient[i], weight[i], m[i]); });
}

template <class T>
void adamw(const Call<T>& call) {
  const core::OpAttrs& a = call.attrs();
  const AdamwRule<T> rule(static_cast<T>(a.beta2), static_cast<T>(1 - a.beta1), static_cast<T>(1 - a.beta2),
                          static_cast<T>(std::log(a.beta1)), static_cast<T>(std::log(a.beta2)), static_cast<T>(a.eps),
                          static_cast<T>(a.decay), number(call, 4), number(call, 5), clip_of(call, 6));
  const T* gradient = call.arg(0);
  T* weight = call.updated(1);
  T* m = call.updated(2);
  T* v = call.updated(3);
  T* out = call.out;
  for_elements(elements(call.op.shape),
               [=](std::int64_t i) { out[i] = weight[i] = rule(gradient[i], weight[i], m[i], v[i]); });
}

CAIRN_INSTANTIATE_KERNEL(sum_of_squares);
CAIRN_INSTANTIATE_KERNEL(sgd);
CAIRN_INSTANTIATE_KERNEL(adamw);

}  // namespace cairn::runtime::kernels
