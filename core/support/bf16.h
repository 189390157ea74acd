#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cairn/core/host_device.h"

namespace cairn::core {

/// A bfloat16 number: the upper 16 bits of a float. It is a storage type only; arithmetic is done in float. The
/// conversion from float gives the same bits on every machine.
struct Bf16 {
  std::uint16_t bits = 0;

  Bf16() = default;
  /// Rounds to the nearest value, ties to even. Every NaN becomes 0x7FFF.
  CAIRN_HD explicit Bf16(float value) {
#ifdef CAIRN_DEVICE_PASS
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
    std::uint32_t word = 0;
    std::memcpy(&word, &value, sizeof(word));
    constexpr std::uint32_t kMagnitude = 0x7FFFFFFF, kInfinity = 0x7F800000;
    const bool nan = (word & kMagnitude) > kInfinity;
    bits = nan ? std::uint16_t{0x7FFF} : static_cast<std::uint16_t>((word + 0x7FFF + (word >> 16 & 1)) >> 16);
#endif
  }
  CAIRN_HD explicit operator float() const {
    const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
    float value = 0;
    std::memcpy(&value, &word, sizeof(value));
    return value;
  }
  bool operator==(const Bf16&) const = default;
};
static_assert(sizeof(Bf16) == 2 && std::is_trivially_copyable_v<Bf16>);

}  // namespace cairn::core
