#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "cairn/core/error.h"
#include "cairn/core/machine/support/machine.h"

/// This file computes how many thread blocks, of which size, execute a given number of Teams
/// (core/machine/support/team.h). It calls no function of CUDA, so that it can be tested without a device.
namespace cairn::cuda {

/// Number of teams per block if a team is one thread.
inline constexpr int kThreadsOfBlock = 128;
/// Largest number of blocks of a launch, on every device.
inline constexpr std::int64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();

/// Bytes of a block's shared memory that are left for shared variables that kernels declare, and for the system.
/// scripts/check_kernels.py checks that kernels need no more.
inline constexpr std::int64_t kStaticShared = 4096;

/// Returns the bytes of shared memory that a launch may ask for. `opt_in` is the device's limit,
/// cudaDevAttrMaxSharedMemoryPerBlockOptin.
constexpr std::int64_t dynamic_shared_limit(std::int64_t opt_in) { return opt_in - kStaticShared; }

constexpr int teams_of_block(int threads) {
  return threads == 1 ? kThreadsOfBlock : threads == 32 ? core::kWarpsOfBlock : 1;
}

struct LaunchShape {
  std::int64_t blocks = 0;
  int threads = 0;
  std::int64_t shared_of_team = 0;   ///< bytes of shared memory of a team, a multiple of 16
  std::int64_t shared_of_block = 0;  ///< bytes of shared memory that a block asks for at launch
};

/// Returns the shape of a launch of `teams` teams. Each team has `threads` threads and `shared_bytes` bytes of shared
/// memory. Throws DeviceError if there are more blocks than a device can run.
inline LaunchShape launch_shape(int threads, std::int64_t teams, std::int64_t shared_bytes) {
  const int of_block = teams_of_block(threads);
  LaunchShape shape;
  shape.blocks = teams / of_block + (teams % of_block != 0 ? 1 : 0);
  shape.threads = threads * of_block;
  shape.shared_of_team = (shared_bytes + 15) / 16 * 16;
  shape.shared_of_block = shape.shared_of_team * of_block;
  if (shape.blocks < 1 || shape.blocks > kMostBlocks)
    throw core::DeviceError("a kernel of " + std::to_string(shape.blocks) + " blocks is too large for a device");
  return shape;
}

}  // namespace cairn::cuda
