#pragma once

#include <cstddef>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/util_ptx.cuh>
#include <cub/util_type.cuh>
#include <cub/warp/warp_reduce.cuh>

/// The teams of core/team.h on a GPU.
namespace cairn::cuda {

struct Add {
  template <class T>
  __device__ T operator()(const T& a, const T& b) const {
    return a + b;
  }
};

/// A thread block of kThreads.
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
    __syncthreads();  // before the storage is used again
    return shared_total;
  }
  template <class T>
  __device__ T scan(T value, T& total) const {
    using Scan = cub::BlockScan<T, kThreads>;
    __shared__ typename Scan::TempStorage storage;
    T before{};
    Scan(storage).ExclusiveScan(value, before, T{}, Add{}, total);
    __syncthreads();  // before the storage is used again
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

/// One warp; a block holds several.
class WarpTeam {
 public:
  __device__ explicit WarpTeam(std::byte* shared) : shared_(shared) {}

  static constexpr __device__ int size() { return kWarp; }
  __device__ int rank() const { return static_cast<int>(threadIdx.x % kWarp); }
  __device__ void sync() const { __syncwarp(); }
  template <class T, class Op>
  __device__ T reduce(T value, const Op& op) const {
    __syncwarp();  // shuffles bring values across, not what was written to memory
    // A tree over the lanes above; lane 0 holds the whole, which the others then take.
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

}  // namespace cairn::cuda
