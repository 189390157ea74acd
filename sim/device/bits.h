#pragma once

#include <cstdint>

#include "cairn/core/host_device.h"

namespace cairn::sim::device {

CAIRN_HD inline std::int32_t count_bits(std::uint32_t word) {
#ifdef CAIRN_DEVICE_PASS
  return __popc(word);
#else
  return __builtin_popcount(word);
#endif
}

/// The place of the lowest bit that is set; word is not 0.
CAIRN_HD inline std::int32_t lowest_bit(std::uint32_t word) {
#ifdef CAIRN_DEVICE_PASS
  return __ffs(static_cast<int>(word)) - 1;
#else
  return __builtin_ctz(word);
#endif
}

/// Bits that are set at the places [begin, end) of an array of words.
CAIRN_HD inline std::int32_t count_bits(const std::uint32_t* words, std::int32_t begin, std::int32_t end) {
  std::int32_t count = 0;
  for (std::int32_t at = begin; at < end;) {
    const std::int32_t next = at / 32 * 32 + 32 < end ? at / 32 * 32 + 32 : end;
    const std::uint32_t from = words[at / 32] >> at % 32;
    const std::int32_t width = next - at;
    count += count_bits(width < 32 ? from & ((1U << width) - 1) : from);
    at = next;
  }
  return count;
}

}  // namespace cairn::sim::device
