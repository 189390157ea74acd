#pragma once

#include <cstdint>

#include "core/bf16.h"
#include "core/host_device.h"

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

/// Pack `index` of a tensor that starts at 16 bytes.
template <class T>
CAIRN_HD void store_pack(T* tensor, std::int64_t index, const Pack<T>& pack) {
  reinterpret_cast<Pack<T>*>(tensor)[index] = pack;
}

}  // namespace cairn::runtime::device
