#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cuda/internal/error.h"
#include "cuda/internal/machine.h"
#include "cuda/internal/team.cuh"

namespace cairn::cuda {

/// Warps that share a block where a team is a warp: enough for a block to fill its share of a multiprocessor.
inline constexpr int kWarpsOfBlock = 8;

template <class F>
inline constexpr int kTeamsOfBlock = F::kThreads == kWarp ? kWarpsOfBlock : 1;

template <class F>
__global__ void __launch_bounds__(F::kThreads* kTeamsOfBlock<F>)
    run_teams(const __grid_constant__ F functor, std::int64_t teams, std::int64_t shared_bytes) {
  extern __shared__ float4 memory[];
  auto* shared = reinterpret_cast<std::byte*>(memory);
  if constexpr (F::kThreads == kWarp) {
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kWarpsOfBlock + warp;
    if (index < teams) functor(WarpTeam(shared + warp * shared_bytes), index);
  } else {
    functor(BlockTeam<F::kThreads>(shared), static_cast<std::int64_t>(blockIdx.x));
  }
}

template <class F>
void Machine::launch(const F& functor, std::int64_t teams, std::int64_t shared_bytes) {
  static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= 4096 - 16);
  static_assert(F::kThreads >= kWarp && F::kThreads <= 1024 && F::kThreads % kWarp == 0);
  constexpr std::int64_t kFreeShared = 48 * 1024;  // a kernel must opt in to more
  const std::int64_t of_team = (shared_bytes + 15) / 16 * 16;
  const std::int64_t of_block = of_team * kTeamsOfBlock<F>;
  const std::int64_t blocks = (teams + kTeamsOfBlock<F> - 1) / kTeamsOfBlock<F>;
  if (blocks < 1 || blocks > std::numeric_limits<std::int32_t>::max() || of_block > shared_limit_) {
    throw core::DeviceError("a kernel of " + std::to_string(blocks) + " blocks with " + std::to_string(of_block) +
                            " bytes of shared memory each is too large for this device");
  }
  if (of_block > kFreeShared) {
    check(cudaFuncSetAttribute(run_teams<F>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(of_block)),
          "the shared memory of a kernel");
  }
  run_teams<F>
      <<<static_cast<unsigned>(blocks), F::kThreads * kTeamsOfBlock<F>, static_cast<std::size_t>(of_block), stream_>>>(
          functor, teams, of_team);
  check(cudaGetLastError(), "the launch of a kernel");
}

}  // namespace cairn::cuda
