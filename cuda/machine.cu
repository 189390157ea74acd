// Defines the functions of Machine that launch kernels, and those that use CUB (NVIDIA's library of parallel
// algorithms).
#include <thrust/iterator/counting_iterator.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include "cairn/core/host_device.h"
#include "cairn/cuda/internal/machine.cuh"

namespace cairn::cuda {
namespace {

constexpr std::int64_t kAlignment = 256;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Adds two values as int64, so that a sum of int32 values does not overflow.
struct Plus {
  __host__ __device__ std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a + b; }
};

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

/// Sorts `count` keys by CUB's radix sort and permutes places[] in the same way. Considers only the lowest `bits` bits
/// of the keys. The sort is stable and gives the same result every time. If `workspace` is nullptr, only returns the
/// bytes of workspace that a sort needs.
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

__global__ void empty_kernel() {}

}  // namespace

template <class Call>
void Machine::with_workspace(const char* what, const Call& call) {
  std::size_t bytes = 0;
  check(call(nullptr, bytes), what);
  check(call(workspace(static_cast<std::int64_t>(bytes)), bytes), what);
}

template <class T>
void Machine::sum_up(const T* in, std::int64_t* out, std::int64_t count) {
  fill(out, 0, static_cast<std::int64_t>(sizeof(std::int64_t)));
  with_workspace("a prefix sum", [&](void* memory, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveScan(memory, bytes, in, out + 1, Plus{}, count, stream_);
  });
}
void Machine::exclusive_sum(const std::int32_t* in, std::int64_t* out, std::int64_t count) { sum_up(in, out, count); }
void Machine::exclusive_sum(const std::int64_t* in, std::int64_t* out, std::int64_t count) { sum_up(in, out, count); }

void Machine::sort_pairs(const std::uint64_t* keys, std::uint64_t* sorted_keys, const std::int32_t* values,
                         std::int32_t* sorted_values, std::int64_t count) {
  with_workspace("a sort", [&](void* memory, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(memory, bytes, keys, sorted_keys, values, sorted_values, count, 0, 64,
                                           stream_);
  });
}

std::int64_t Machine::select(const std::uint8_t* flags, std::int64_t count, std::int64_t* out) {
  if (count == 0) return 0;
  const auto found = array<std::int64_t>(1);
  with_workspace("a selection", [&](void* memory, std::size_t& bytes) {
    return cub::DeviceSelect::Flagged(memory, bytes, thrust::counting_iterator<std::int64_t>(0), flags, out,
                                      found.data(), count, stream_);
  });
  std::int64_t number = 0;
  download(found.data(), 1, &number);
  return number;
}

std::int64_t Machine::sort_workspace(std::int64_t count) const {
  return aligned(sort_bytes(count)) + count * static_cast<std::int64_t>(sizeof(std::int32_t));
}

void Machine::sort_by_key(const std::int32_t* keys, std::int32_t* sorted_keys, std::int32_t* sorted_places,
                          std::int64_t count, std::int64_t limit, void* workspace) const {
  const std::int64_t bytes = sort_bytes(count);
  auto* places = reinterpret_cast<std::int32_t*>(static_cast<std::byte*>(workspace) + aligned(bytes));
  launch(CountUp{places, count}, (count + CountUp::kPlaces - 1) / CountUp::kPlaces);
  int bits = 1;
  while (bits < 31 && (std::int64_t{1} << bits) < limit) ++bits;
  radix_sort(workspace, static_cast<std::size_t>(bytes), keys, sorted_keys, places, sorted_places, count, bits,
             stream_);
}

void launch_kernel(const void* kernel, const LaunchShape& shape, void** arguments, cudaStream_t stream) {
  check(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(shape.blocks)), dim3(static_cast<unsigned>(shape.threads)),
                         arguments, static_cast<std::size_t>(shape.shared_of_block), stream),
        "the launch of a kernel");
}

std::int64_t resident_blocks(const void* kernel, const LaunchShape& shape) {
  int multiprocessors = 0, blocks = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, current_device()),
        "the multiprocessors");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            &blocks, kernel, shape.threads, static_cast<std::size_t>(shape.shared_of_block), cudaOccupancyDefault),
        "the occupancy of a kernel");
  return static_cast<std::int64_t>(multiprocessors) * (blocks > 0 ? blocks : 1);
}

cudaError_t kernel_image_status() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, empty_kernel);
}

}  // namespace cairn::cuda
