#pragma once

#include <cstdint>

#include "cairn/core/host_device.h"

namespace cairn::sim {

inline constexpr int kPhiloxRounds = 7;

struct Philox {
  std::uint32_t word[4];
};

/// Returns the four random words of Philox4x32-7 (Salmon et al. 2011) for a counter and a key. The words depend on
/// nothing else, so they are the same on every machine and in any order of calls. Seven is the smallest number of
/// rounds with which Philox passes the test suite BigCrush.
CAIRN_HD inline Philox philox(const Philox& counter, std::uint64_t key) {
  std::uint32_t a = counter.word[0], b = counter.word[1], c = counter.word[2], d = counter.word[3];
  auto key_low = static_cast<std::uint32_t>(key), key_high = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53U} * a, second = std::uint64_t{0xCD9E8D57U} * c;
    a = static_cast<std::uint32_t>(second >> 32) ^ b ^ key_low;
    b = static_cast<std::uint32_t>(second);
    c = static_cast<std::uint32_t>(first >> 32) ^ d ^ key_high;
    d = static_cast<std::uint32_t>(first);
    key_low += 0x9E3779B9U;
    key_high += 0xBB67AE85U;
  }
  return {{a, b, c, d}};
}

}  // namespace cairn::sim
