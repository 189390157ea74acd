#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "cairn/core/host_device.h"
#include "cairn/cuda/internal/machine.cuh"

namespace cairn::cuda {
namespace {

constexpr std::int64_t kAlignment = 256;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// places[i] = i
struct CountUp {
  static constexpr int kThreads = 256;
  static constexpr std::int64_t kPlaces = 1024;
  std::int32_t* places;
  std::int64_t count;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const std::int64_t end = (index + 1) * kPlaces < count ? (index + 1) * kPlaces : count;
    for (std::int64_t i = index * kPlaces + team.rank(); i < end; i += team.size()) {
      places[i] = static_cast<std::int32_t>(i);
    }
  }
};

/// CUB's radix sort is stable and, for a given device, takes the same steps every time.
std::size_t radix_sort(void* workspace, std::size_t bytes, const std::int32_t* keys, std::int32_t* sorted_keys,
                       const std::int32_t* places, std::int32_t* sorted_places, std::int64_t count, int bits,
                       cudaStream_t stream) {
  check(cub::DeviceRadixSort::SortPairs(workspace, bytes, keys, sorted_keys, places, sorted_places, count, 0, bits,
                                        stream),
        "a sort of ids");
  return bytes;
}

std::int64_t sort_bytes(std::int64_t count) {
  return static_cast<std::int64_t>(radix_sort(nullptr, 0, nullptr, nullptr, nullptr, nullptr, count, 32, nullptr));
}

}  // namespace

Machine::Machine(std::int64_t workspace_limit_bytes)
    : gemms_(workspace_limit_bytes), convolutions_(workspace_limit_bytes) {}

std::int64_t Machine::sort_workspace(std::int64_t count) {
  return aligned(sort_bytes(count)) + count * static_cast<std::int64_t>(sizeof(std::int32_t));
}

void Machine::sort_by_key(const std::int32_t* keys, std::int32_t* sorted_keys, std::int32_t* sorted_places,
                          std::int64_t count, std::int64_t limit, void* workspace) {
  const std::int64_t bytes = sort_bytes(count);
  auto* places = reinterpret_cast<std::int32_t*>(static_cast<std::byte*>(workspace) + aligned(bytes));
  launch(CountUp{places, count}, (count + CountUp::kPlaces - 1) / CountUp::kPlaces);
  int bits = 1;
  while (bits < 31 && (std::int64_t{1} << bits) < limit) ++bits;
  radix_sort(workspace, static_cast<std::size_t>(bytes), keys, sorted_keys, places, sorted_places, count, bits,
             stream());
}

}  // namespace cairn::cuda
