#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/fit/largest_batch.h"

/// Computes how much memory of a device a training step needs beside its arena (the block of memory for the tensors of
/// a schedule), and how much is left for the arena.
namespace cairn::pipeline {

/// Bytes of a graph's resident tensors by kind. Resident tensors stay in memory and are not in the arena.
struct ResidentBytes {
  std::int64_t weights = 0, gradients = 0, optimizer = 0, inputs = 0, constants = 0;
  std::int64_t unlisted = 0;  ///< bytes of resident tensors whose kind the graph does not state

  std::int64_t total() const { return weights + gradients + optimizer + inputs + constants + unlisted; }
  /// Returns the name and the bytes of each kind that is not 0.
  std::vector<std::pair<std::string, std::int64_t>> parts() const;
};
/// Sums the graph's resident tensors by kind. O(number of resident tensors). total() equals graph.resident_bytes().
ResidentBytes resident_bytes(const core::Graph& graph);

/// Assumed bytes of a CUDA context and the code of libraries. The real size depends on driver and device.
inline constexpr std::int64_t kContextBytes = std::int64_t{512} << 20;
/// Largest workspace (temporary memory) in bytes of one op in libraries such as cuDNN (cuda/device.h). share_device()
/// subtracts this number, because the sizes in the graph do not contain workspaces. When a GPU executes a graph,
/// workspaces are a part of the arena.
inline constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;

/// The memory of a device on which a training step runs, in bytes.
struct DeviceMemory {
  std::int64_t bytes = 0;                ///< all memory of the device
  std::int64_t context = kContextBytes;  ///< the part of `bytes` that the CUDA context and its code take
};

/// Says how the memory of a device is divided during a training step.
struct DeviceShare {
  std::int64_t device = 0;  ///< bytes of the whole device
  ResidentBytes resident;
  std::int64_t workspace = 0;  ///< kWorkspaceBytes if some node has an op, else 0
  std::int64_t context = 0;

  std::int64_t beside_arena() const { return resident.total() + workspace + context; }
  /// Returns the budget: the bytes left for the arena; 0 or less if nothing is left.
  std::int64_t arena() const { return device - beside_arena(); }
};
/// Computes how much of the device's memory the graph's resident tensors, workspace and context take.
DeviceShare share_device(const core::Graph& graph, const DeviceMemory& device);

/// Says how the memory of a device is divided for a graph and, if the device is too small, which device or batch would
/// fit.
struct DeviceAdvice {
  DeviceShare share;
  /// Bytes of the smallest device that has room for an arena of the least budget known; none if no budget is known.
  std::optional<std::int64_t> least_memory;
  std::optional<fit::LargestBatch> largest_batch;
};

}  // namespace cairn::pipeline
