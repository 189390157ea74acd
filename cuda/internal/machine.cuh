#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cairn/core/host_device.h"
#include "cairn/core/machine/support/team.h"
#include "cairn/cuda/internal/machine.h"

/// This file defines the Teams (groups of cooperating threads, core/machine/support/team.h) of GPUs, and how a Machine
/// (core/machine/support/machine.h) launches kernels on them.
namespace cairn::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xFFFFFFFFU;

namespace detail {

/// Applies `shuffle`, which exchanges 32-bit words between the lanes of a warp, to each word of a value. Returns the
/// value that consists of the resulting words. All lanes of the warp must call this function.
template <class T, class Shuffle>
__device__ T shuffle_words(const T& value, const Shuffle& shuffle) {
  static_assert(std::is_trivially_copyable_v<T>);
  constexpr int kWords = (sizeof(T) + 3) / 4;
  unsigned words[kWords] = {};
  memcpy(words, &value, sizeof(T));
  CAIRN_UNROLL
  for (int i = 0; i < kWords; ++i) words[i] = shuffle(words[i]);
  T result;
  memcpy(&result, words, sizeof(T));
  return result;
}
template <class T>
__device__ T from_lane(const T& value, int lane) {
  return shuffle_words(value, [=](unsigned word) { return __shfl_sync(kAllLanes, word, lane); });
}
/// Returns the value that lane `lane - offset` passes, where `lane` is the caller's lane. Lanes below `offset` get
/// their own value.
template <class T>
__device__ T from_below(const T& value, int offset) {
  return shuffle_words(value, [=](unsigned word) { return __shfl_up_sync(kAllLanes, word, offset); });
}
/// Returns the value that lane `lane + offset` passes, where `lane` is the caller's lane. If there is no such lane,
/// returns the caller's own value.
template <class T>
__device__ T from_above(const T& value, int offset) {
  return shuffle_words(value, [=](unsigned word) { return __shfl_down_sync(kAllLanes, word, offset); });
}

/// Returns the sum of the values of this lane and all lower lanes of the warp.
template <class T>
__device__ T sum_up_to(T value, int lane) {
  CAIRN_UNROLL
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const T below = from_below(value, offset);
    if (lane >= offset) value = below + value;
  }
  return value;
}

/// Storage for kCount values of type T in shared memory. It consists of bytes, because variables in shared memory
/// cannot have constructors.
template <class T, int kCount>
struct alignas(T) Slots {
  std::byte bytes[kCount * sizeof(T)];
  __device__ T& operator[](int i) { return reinterpret_cast<T*>(bytes)[i]; }
};

}  // namespace detail

/// A Team that consists of a thread block of kThreads threads.
template <int kThreads>
class BlockTeam {
 public:
  __device__ explicit BlockTeam(std::byte* shared) : shared_(shared) {}

  static constexpr __device__ int size() { return kThreads; }
  __device__ int rank() const { return static_cast<int>(threadIdx.x); }
  __device__ void sync() const { __syncthreads(); }
  /// Returns the combination of the values of all threads. Each warp combines its values along a tree; then one thread
  /// combines the results of the warps in ascending order.
  template <class T, class Op>
  __device__ T reduce(T value, const Op& op) const {
    __shared__ detail::Slots<T, kWarps + 1> of_warp;  // the last slot holds the result
    CAIRN_UNROLL
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const T above = detail::from_above(value, offset);
      if (lane() + offset < kWarp) value = op(value, above);
    }
    if (lane() == 0) of_warp[warp()] = value;
    __syncthreads();
    if (rank() == 0) {
      CAIRN_UNROLL
      for (int w = 1; w < kWarps; ++w) value = op(value, of_warp[w]);
      of_warp[kWarps] = value;
    }
    __syncthreads();
    const T total = of_warp[kWarps];
    __syncthreads();  // all threads must have read the result before the storage is used again
    return total;
  }
  /// Returns the sum of the values of all threads with lower ranks, and sets `total` to the sum of all values. Each
  /// lane of the first warp adds up the values of kWarps threads.
  template <class T>
  __device__ T scan(T value, T& total) const {
    __shared__ detail::Slots<T, kThreads + kWarp + 1> sums;  // the last slot holds the total
    // Each lane reads kWarps consecutive values. One slot is left empty after these values, so that the lanes access
    // different memory banks.
    const int own = rank() + rank() / kWarps, first = rank() * (kWarps + 1);
    sums[own] = value;
    __syncthreads();
    if (rank() < kWarp) {
      T of_lane{};
      CAIRN_UNROLL
      for (int k = 0; k < kWarps; ++k) of_lane = of_lane + sums[first + k];
      const T up_to = detail::sum_up_to(of_lane, rank());
      T before = detail::from_below(up_to, 1);
      if (rank() == 0) before = T{};
      CAIRN_UNROLL
      for (int k = 0; k < kWarps; ++k) {
        const T next = before + sums[first + k];
        sums[first + k] = before;
        before = next;
      }
      if (rank() == kWarp - 1) sums[kThreads + kWarp] = before;
    }
    __syncthreads();
    const T before = sums[own];
    total = sums[kThreads + kWarp];
    __syncthreads();  // all threads must have read the result before the storage is used again
    return before;
  }
  template <class T>
  __device__ T* shared() const {
    return reinterpret_cast<T*>(shared_);
  }

 private:
  static constexpr int kWarps = kThreads / kWarp;
  __device__ int warp() const { return rank() / kWarp; }
  __device__ int lane() const { return rank() % kWarp; }

  std::byte* shared_;
};

/// A Team that consists of one warp. Several such Teams share a thread block.
class WarpTeam {
 public:
  __device__ explicit WarpTeam(std::byte* shared) : shared_(shared) {}

  static constexpr __device__ int size() { return kWarp; }
  __device__ int rank() const { return static_cast<int>(threadIdx.x % kWarp); }
  __device__ void sync() const { __syncwarp(); }
  template <class T, class Op>
  __device__ T reduce(T value, const Op& op) const {
    __syncwarp();  // shuffles synchronise registers only, so writes to memory need this call
    // Only lane 0 has the whole result after the loop; all lanes copy it from lane 0.
    CAIRN_UNROLL
    for (int offset = kWarp / 2; offset > 0; offset /= 2) value = op(value, detail::from_above(value, offset));
    return detail::from_lane(value, 0);
  }
  template <class T>
  __device__ T scan(T value, T& total) const {
    __syncwarp();
    const T inclusive = detail::sum_up_to(value, rank());
    total = detail::from_lane(inclusive, kWarp - 1);
    const T before = detail::from_below(inclusive, 1);
    return rank() == 0 ? T{} : before;
  }
  template <class T>
  __device__ T* shared() const {
    return reinterpret_cast<T*>(shared_);
  }

 private:
  std::byte* shared_;
};

/// Number of blocks that a multiprocessor should be able to run at a time: the functor's kBlocks. The compiler limits
/// the registers of a thread accordingly. If the functor has no kBlocks, the value is 0, and the compiler chooses.
template <class F>
inline constexpr int kLeastBlocks = [] {
  if constexpr (requires { F::kBlocks; }) return F::kBlocks;
  return 0;
}();

template <class F>
__global__ void __launch_bounds__(F::kThreads* kTeamsOfBlock<F>, kLeastBlocks<F>)
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
  const auto* kernel = reinterpret_cast<const void*>(run_teams<F>);
  LaunchShape shape = launch_shape(F::kThreads, teams, shared_bytes);
  allow_shared(shape.shared_of_block, kernel);
  void* arguments[] = {const_cast<F*>(&functor), &teams, &shape.shared_of_team};
  launch_kernel(kernel, shape, arguments, stream_);
}

template <class F>
std::int64_t Machine::resident_teams(std::int64_t shared_bytes) const {
  const auto* kernel = reinterpret_cast<const void*>(run_teams<F>);
  const LaunchShape shape = launch_shape(F::kThreads, 1, shared_bytes);
  allow_shared(shape.shared_of_block, kernel);
  return resident_blocks(kernel, shape) * kTeamsOfBlock<F>;
}

}  // namespace cairn::cuda
