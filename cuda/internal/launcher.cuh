#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "cairn/core/error.h"
#include "cairn/core/machine/team.h"
#include "cairn/cuda/internal/error.h"
#include "cairn/cuda/internal/launcher.h"
#include "cairn/cuda/internal/team.cuh"

namespace cairn::cuda {

/// Warps that share a block where a team is a warp: enough for a block to fill its share of a multiprocessor.
inline constexpr int kWarpsOfBlock = 8;
/// The same where a team is a thread.
inline constexpr int kThreadsOfBlock = 128;

template <class F>
inline constexpr int kTeamsOfBlock = F::kThreads == 1       ? kThreadsOfBlock
                                     : F::kThreads == kWarp ? kWarpsOfBlock
                                                            : 1;

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
    const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kWarpsOfBlock + warp;
    if (index < teams) functor(WarpTeam(shared + warp * shared_bytes), index);
  } else {
    functor(BlockTeam<F::kThreads>(shared), static_cast<std::int64_t>(blockIdx.x));
  }
}

/// Bytes of shared memory of a block, which the kernel is told to expect.
template <class F>
std::int64_t shared_of_block(std::int64_t of_team, std::int64_t limit) {
  constexpr std::int64_t kFreeShared = 48 * 1024;  // a kernel must opt in to more
  const std::int64_t of_block = of_team * kTeamsOfBlock<F>;
  if (of_block > limit) {
    throw core::DeviceError("a kernel with " + std::to_string(of_block) +
                            " bytes of shared memory a block is too large for this device");
  }
  if (of_block > kFreeShared) {
    check(cudaFuncSetAttribute(run_teams<F>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(of_block)),
          "the shared memory of a kernel");
  }
  return of_block;
}

template <class F>
void Launcher::launch(const F& functor, std::int64_t teams, std::int64_t shared_bytes) const {
  static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= 4096 - 16);
  static_assert(F::kThreads == 1 || (F::kThreads >= kWarp && F::kThreads <= 1024 && F::kThreads % kWarp == 0));
  if (teams == 0) return;
  const std::int64_t of_team = (shared_bytes + 15) / 16 * 16;
  const std::int64_t blocks = (teams + kTeamsOfBlock<F> - 1) / kTeamsOfBlock<F>;
  if (blocks < 1 || blocks > std::numeric_limits<std::int32_t>::max())
    throw core::DeviceError("a kernel of " + std::to_string(blocks) + " blocks is too large for a device");
  const std::int64_t of_block = shared_of_block<F>(of_team, shared_limit_);
  run_teams<F>
      <<<static_cast<unsigned>(blocks), F::kThreads * kTeamsOfBlock<F>, static_cast<std::size_t>(of_block), stream_>>>(
          functor, teams, of_team);
  check(cudaGetLastError(), "the launch of a kernel");
}

template <class F>
std::int64_t Launcher::resident_teams(std::int64_t shared_bytes) const {
  const std::int64_t of_block = shared_of_block<F>((shared_bytes + 15) / 16 * 16, shared_limit_);
  int device = 0, multiprocessors = 0, blocks = 0;
  check(cudaGetDevice(&device), "the current device");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "the multiprocessors");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, run_teams<F>, F::kThreads * kTeamsOfBlock<F>,
                                                      static_cast<std::size_t>(of_block)),
        "the occupancy of a kernel");
  return static_cast<std::int64_t>(multiprocessors) * (blocks > 0 ? blocks : 1) * kTeamsOfBlock<F>;
}

}  // namespace cairn::cuda
