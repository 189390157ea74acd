#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

/// These functions do arithmetic on real numbers as a GPU does it.
namespace cairn::tests::ptx {

/// Returns `value`, but replaces a subnormal float by a zero with the same sign.
template <class T>
T flushed(T value) {
  if constexpr (sizeof(T) == 4) {
    if (std::fabs(value) < std::numeric_limits<T>::min()) return std::copysign(T{0}, value);
  }
  return value;
}

// This code does not use core::Bf16, because tests compare the results of kernels with results of core::Bf16.
inline float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
/// Rounds to the nearest bf16, and in a tie to the one with an even mantissa. Every NaN becomes 0x7fff.
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace cairn::tests::ptx
