#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/fit/largest_batch.h"

/// What a training step needs on a device beside the arena, and how much of a model fits beside it.
namespace cairn::pipeline {

/// What is in memory under every schedule, in bytes.
struct ResidentBytes {
  std::int64_t weights = 0, gradients = 0, optimizer = 0, inputs = 0, constants = 0;
  std::int64_t unlisted = 0;  ///< of a graph that says only how many bytes there are

  std::int64_t total() const { return weights + gradients + optimizer + inputs + constants + unlisted; }
  /// Those that are not 0, with their names.
  std::vector<std::pair<std::string, std::int64_t>> parts() const;
};
/// O(residents). total() is graph.resident_bytes().
ResidentBytes resident_bytes(const core::Graph& graph);

/// What a CUDA context with its libraries' code takes: assumed, as it depends on driver and device.
inline constexpr std::int64_t kContextBytes = std::int64_t{512} << 20;
/// Most that libraries may take for one op (cuda/device.h): where the graph runs there, this is part of the arena.
inline constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;

/// A device for a training step, in bytes.
struct DeviceMemory {
  std::int64_t bytes = 0;                ///< all of it
  std::int64_t context = kContextBytes;  ///< of them, for the CUDA context and its code
};

/// How the memory of a device is divided.
struct DeviceShare {
  std::int64_t device = 0;  ///< bytes in all
  ResidentBytes resident;
  std::int64_t workspace = 0;  ///< of libraries: kWorkspaceBytes where some node has an op, else 0
  std::int64_t context = 0;

  std::int64_t beside_arena() const { return resident.total() + workspace + context; }
  /// What is left for the arena: the budget. 0 or less: nothing is.
  std::int64_t arena() const { return device - beside_arena(); }
};
DeviceShare share_device(const core::Graph& graph, const DeviceMemory& device);

/// A device for a graph, and what helps where it is too small.
struct DeviceAdvice {
  DeviceShare share;
  std::optional<std::int64_t> least_memory;  ///< bytes: of a device that has just room for the least budget known
  std::optional<fit::LargestBatch> largest_batch;
};

}  // namespace cairn::pipeline
