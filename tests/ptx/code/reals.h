#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

/// Real numbers as a device has them.
namespace cairn::tests::ptx {

/// Zero for a subnormal number, with its sign.
template <class T>
T flushed(T value) {
  if constexpr (sizeof(T) == 4) {
    if (std::fabs(value) < std::numeric_limits<T>::min()) return std::copysign(T{0}, value);
  }
  return value;
}

inline float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
/// Rounds to the nearest bf16, ties to even.
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace cairn::tests::ptx
