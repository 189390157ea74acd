#pragma once

#include <cstdint>

#include "cairn/core/host_device.h"

/// This file has operations for which a GPU has instructions, and the alignment that they need.
namespace cairn::sim::device {

/// Rounds the size of an array up to a multiple of 16 bytes, so that the array that follows it in memory can be
/// accessed 16 bytes at a time.
CAIRN_HD constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + 15) / 16 * 16; }

// The functions below update integers. The final value of an integer does not depend on the order of its updates. The
// 32-bit functions may be called concurrently by the threads of one team. The 64-bit functions may be called
// concurrently by the threads of all teams of a launch. On the host, a team is one thread, and teams may run
// concurrently. In tests, the threads of a team can be coroutines. On the host, the accesses are relaxed atomics, which
// cost nothing: without them, the thread sanitizer would report accesses of several coroutines as a race.

/// Adds `value` and returns the value before the addition.
CAIRN_HD inline std::int32_t fetch_add(std::int32_t* place, std::int32_t value) {
#ifdef CAIRN_DEVICE_PASS
  return atomicAdd(place, value);
#else
  const std::int32_t before = __atomic_load_n(place, __ATOMIC_RELAXED);
  __atomic_store_n(place, before + value, __ATOMIC_RELAXED);
  return before;
#endif
}

CAIRN_HD inline void fetch_add(std::int64_t* place, std::int64_t value) {
#ifdef CAIRN_DEVICE_PASS
  atomicAdd(reinterpret_cast<unsigned long long*>(place), static_cast<unsigned long long>(value));
#else
  __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
#endif
}

/// Adds to entry `index` of an array of 16-bit numbers, which is aligned to 4 bytes, and returns the value before the
/// addition. The sum must fit into 16 bits.
CAIRN_HD inline std::uint32_t fetch_add(std::uint16_t* array, std::int64_t index, std::uint32_t value) {
#ifdef CAIRN_DEVICE_PASS
  const auto shift = static_cast<std::uint32_t>(index % 2 * 16);
  return atomicAdd(reinterpret_cast<unsigned*>(array) + index / 2, value << shift) >> shift & 0xFFFFU;
#else
  const std::uint32_t before = __atomic_load_n(array + index, __ATOMIC_RELAXED);
  __atomic_store_n(array + index, static_cast<std::uint16_t>(before + value), __ATOMIC_RELAXED);
  return before;
#endif
}

CAIRN_HD inline void fetch_or(std::uint32_t* place, std::uint32_t bits) {
#ifdef CAIRN_DEVICE_PASS
  atomicOr(place, bits);
#else
  __atomic_store_n(place, __atomic_load_n(place, __ATOMIC_RELAXED) | bits, __ATOMIC_RELAXED);
#endif
}

/// Stores a value at an address at which other threads may store values at the same time. One of these values remains.
template <class T>
CAIRN_HD void store_one(T* address, T value) {
#ifdef CAIRN_DEVICE_PASS
  *const_cast<volatile T*>(address) = value;  // by PTX's memory model, volatile stores do not race
#else
  __atomic_store(address, &value, __ATOMIC_RELAXED);
#endif
}

CAIRN_HD inline std::int32_t count_bits(std::uint32_t word) {
#ifdef CAIRN_DEVICE_PASS
  return __popc(word);
#else
  return __builtin_popcount(word);
#endif
}

CAIRN_HD inline std::int32_t count_bits(std::uint64_t word) {
  return count_bits(static_cast<std::uint32_t>(word)) + count_bits(static_cast<std::uint32_t>(word >> 32));
}

/// Returns the index of the lowest set bit; `word` must not be 0.
CAIRN_HD inline std::int32_t lowest_bit(std::uint32_t word) {
#ifdef CAIRN_DEVICE_PASS
  return __ffs(static_cast<int>(word)) - 1;
#else
  return __builtin_ctz(word);
#endif
}

/// Returns the number of zero bits above the highest bit that is set; `word` must not be 0.
CAIRN_HD inline std::int32_t leading_zeros(std::uint32_t word) {
#ifdef CAIRN_DEVICE_PASS
  return __clz(static_cast<int>(word));
#else
  return __builtin_clz(word);
#endif
}

/// Returns a * b / 2^32, rounded down.
CAIRN_HD inline std::uint32_t high_product(std::uint32_t a, std::uint32_t b) {
#ifdef CAIRN_DEVICE_PASS
  return __umulhi(a, b);
#else
  return static_cast<std::uint32_t>(std::uint64_t{a} * b >> 32);
#endif
}

/// Returns how many of the bits begin to end - 1 of an array are set. Bit i is bit i % 32 of words[i / 32].
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
