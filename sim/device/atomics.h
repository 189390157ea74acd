#pragma once

#include <cstdint>

#include "cairn/core/host_device.h"

/// Integer updates whose results do not depend on their order: of 32 bits by the threads of one team, of 64 bits by all
/// teams of a launch. On the host one thread runs at a time within a team, and teams may run at once.
namespace cairn::sim::device {

/// What stood there before.
CAIRN_HD inline std::int32_t fetch_add(std::int32_t* place, std::int32_t value) {
#ifdef CAIRN_DEVICE_PASS
  return atomicAdd(place, value);
#else
  const std::int32_t before = *place;
  *place += value;
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

CAIRN_HD inline void fetch_or(std::uint32_t* place, std::uint32_t bits) {
#ifdef CAIRN_DEVICE_PASS
  atomicOr(place, bits);
#else
  *place |= bits;
#endif
}

}  // namespace cairn::sim::device
