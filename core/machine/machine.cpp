#include "cairn/core/machine/support/machine.h"

#include <unistd.h>

namespace cairn::core {

void HostMachine::sort_pairs(const std::uint64_t* keys, std::uint64_t* sorted_keys, const std::int32_t* values,
                             std::int32_t* sorted_values, std::int64_t count) const {
  std::vector<std::int64_t> places(static_cast<std::size_t>(count));
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [=](std::int64_t a, std::int64_t b) { return keys[a] < keys[b]; });
  for (std::int64_t i = 0; i < count; ++i) {
    sorted_keys[i] = keys[places[i]];
    sorted_values[i] = values[places[i]];
  }
}

void HostMachine::sort_by_key(const std::int32_t* keys, std::int32_t* sorted_keys, std::int32_t* sorted_places,
                              std::int64_t count, std::int64_t /*limit*/, void* /*workspace*/) const {
  std::iota(sorted_places, sorted_places + count, 0);
  std::stable_sort(sorted_places, sorted_places + count,
                   [=](std::int32_t a, std::int32_t b) { return keys[a] < keys[b]; });
  for (std::int64_t i = 0; i < count; ++i) sorted_keys[i] = keys[sorted_places[i]];
}

std::int64_t HostMachine::select(const std::uint8_t* flags, std::int64_t count, std::int64_t* out) const {
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (flags[i] != 0) out[found++] = i;
  }
  return found;
}

std::int64_t HostMachine::free_bytes() const {
  return static_cast<std::int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

}  // namespace cairn::core
