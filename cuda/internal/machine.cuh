#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/util_ptx.cuh>
#include <cub/util_type.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <limits>
#include <string>
#include <type_traits>

#include "cairn/core/error.h"
#include "cairn/core/machine/team.h"
#include "cairn/cuda/internal/machine.h"

/// The Teams of core/machine/team.h on a GPU, and their launch by a Machine.
namespace cairn::cuda {

/// A thread block of kThreads threads.
template <int kThreads>
class BlockTeam {
 public:
  __device__ explicit BlockTeam(std::byte* shared) : shared_(shared) {}

  static constexpr __device__ int size() { return kThreads; }
  __device__ int rank() const { return static_cast<int>(threadIdx.x); }
  __device__ void sync() const { __syncthreads(); }
  template <class T, class Op>
  __device__ T reduce(T value, const Op& op) const {
    using Reduce = cub::BlockReduce<T, kThreads>;
    __shared__ typename Reduce::TempStorage storage;
    __shared__ cub::Uninitialized<T> result;
    const T total = Reduce(storage).Reduce(value, op);
    if (rank() == 0) result.Alias() = total;
    __syncthreads();
    const T shared_total = result.Alias();
    __syncthreads();  // all must have read the result before the storage is used again
    return shared_total;
  }
  template <class T>
  __device__ T scan(T value, T& total) const {
    using Scan = cub::BlockScan<T, kThreads>;
    __shared__ typename Scan::TempStorage storage;
    T before{};
    Scan(storage).ExclusiveScan(value, before, T{}, core::Sum(), total);
    __syncthreads();  // all must have read the result before the storage is used again
    return before;
  }
  template <class T>
  __device__ T* shared() const {
    return reinterpret_cast<T*>(shared_);
  }

 private:
  std::byte* shared_;
};

inline constexpr int kWarp = 32;

/// One warp. A block holds several warps.
class WarpTeam {
 public:
  __device__ explicit WarpTeam(std::byte* shared) : shared_(shared) {}

  static constexpr __device__ int size() { return kWarp; }
  __device__ int rank() const { return static_cast<int>(threadIdx.x % kWarp); }
  __device__ void sync() const { __syncwarp(); }
  template <class T, class Op>
  __device__ T reduce(T value, const Op& op) const {
    __syncwarp();  // shuffles synchronise registers only, so writes to memory need this call
    // Combines values along a tree, so that lane 0 gets the whole result. The other lanes then copy it from lane 0.
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      value = op(value, cub::ShuffleDown<kWarp>(value, offset, kWarp - 1, kAllLanes));
    }
    return cub::ShuffleIndex<kWarp>(value, 0, kAllLanes);
  }
  template <class T>
  __device__ T scan(T value, T& total) const {
    __syncwarp();
    T inclusive = value;
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const T below = cub::ShuffleUp<kWarp>(inclusive, offset, 0, kAllLanes);
      if (rank() >= offset) inclusive = below + inclusive;
    }
    total = cub::ShuffleIndex<kWarp>(inclusive, kWarp - 1, kAllLanes);
    const T before = cub::ShuffleUp<kWarp>(inclusive, 1, 0, kAllLanes);
    return rank() == 0 ? T{} : before;
  }
  template <class T>
  __device__ T* shared() const {
    return reinterpret_cast<T*>(shared_);
  }

 private:
  static constexpr unsigned kAllLanes = 0xFFFFFFFFU;
  std::byte* shared_;
};

template <class F>
__global__ void __launch_bounds__(F::kThreads* kTeamsOfBlock<F>)
    run_teams(const __grid_constant__ F functor, std::int64_t teams, std::int64_t shared_bytes) {
  extern __shared__ float4 memory[];
  auto* shared = reinterpret_cast<std::byte*>(memory);
  if constexpr (F::kThreads == 1) {
    const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreadsOfBlock + threadIdx.x;
    if (index < teams) functor(core::SerialTeam(), index);
  } else if constexpr (F::kThreads == kWarp) {
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * core::kWarpsOfBlock + warp;
    if (index < teams) functor(WarpTeam(shared + warp * shared_bytes), index);
  } else {
    functor(BlockTeam<F::kThreads>(shared), static_cast<std::int64_t>(blockIdx.x));
  }
}

template <class F>
void Machine::launch(const F& functor, std::int64_t teams, std::int64_t shared_bytes) const {
  static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= 4096 - 16);
  static_assert(F::kThreads == 1 || (F::kThreads >= kWarp && F::kThreads <= 1024 && F::kThreads % kWarp == 0));
  if (teams == 0) return;
  const std::int64_t blocks = (teams + kTeamsOfBlock<F> - 1) / kTeamsOfBlock<F>;
  if (blocks < 1 || blocks > std::numeric_limits<std::int32_t>::max())
    throw core::DeviceError("a kernel of " + std::to_string(blocks) + " blocks is too large for a device");
  const std::int64_t of_team = shared_of_team<F>(shared_bytes, reinterpret_cast<const void*>(run_teams<F>));
  run_teams<F><<<static_cast<unsigned>(blocks), F::kThreads * kTeamsOfBlock<F>,
                 static_cast<std::size_t>(of_team * kTeamsOfBlock<F>), stream_>>>(functor, teams, of_team);
  check(cudaGetLastError(), "the launch of a kernel");
}

template <class F>
std::int64_t Machine::resident_teams(std::int64_t shared_bytes) const {
  const std::int64_t of_team = shared_of_team<F>(shared_bytes, reinterpret_cast<const void*>(run_teams<F>));
  int multiprocessors = 0, blocks = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device_), "the multiprocessors");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, run_teams<F>, F::kThreads * kTeamsOfBlock<F>,
                                                      static_cast<std::size_t>(of_team * kTeamsOfBlock<F>)),
        "the occupancy of a kernel");
  return static_cast<std::int64_t>(multiprocessors) * (blocks > 0 ? blocks : 1) * kTeamsOfBlock<F>;
}

}  // namespace cairn::cuda
