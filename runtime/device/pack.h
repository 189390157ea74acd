#pragma once

#include <cstdint>
#include <type_traits>

#include "cairn/core/bf16.h"
#include "cairn/core/host_device.h"

namespace cairn::runtime::device {

/// The elements that one memory access of 16 bytes moves. T is a storage type: float or core::Bf16.
template <class T>
struct alignas(16) Pack {
  static constexpr int kWidth = 16 / static_cast<int>(sizeof(T));
  T value[kWidth];
};

CAIRN_HD inline float to_float(float x) { return x; }
CAIRN_HD inline float to_float(core::Bf16 x) { return static_cast<float>(x); }

template <class T>
CAIRN_HD T from_float(float x) {
  return T(x);
}

/// Whether rows of `cols` elements, one behind the other from an aligned start, all begin at 16 bytes.
template <class T>
CAIRN_HD bool rows_are_packed(std::int64_t cols) {
  return cols % Pack<T>::kWidth == 0;
}

/// body(width), a std::integral_constant: that of a pack if `packed`, else 1.
template <class T, class F>
void with_width(bool packed, const F& body) {
  if (packed) {
    body(std::integral_constant<int, Pack<T>::kWidth>{});
  } else {
    body(std::integral_constant<int, 1>{});
  }
}

}  // namespace cairn::runtime::device
