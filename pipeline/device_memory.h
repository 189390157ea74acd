#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/pipeline/least_budget.h"
#include "cairn/pipeline/problem.h"

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

/// The largest batch of a model that fits.
struct LargestBatch {
  std::int64_t batch = 0;       ///< 0: not even 1 is known to fit
  std::int64_t as_it_is = 0;    ///< the largest that fits in the baseline order, without recomputation
  std::int64_t refused = 0;     ///< the least that was tried and did not fit; 0: none
  bool refusal_proved = false;  ///< that none larger fits either, as far as a larger batch needs no less
  std::vector<std::int64_t> tried;
  bool timed_out = false;
};

/// A device for a graph, and what helps where it is too small.
struct DeviceAdvice {
  DeviceShare share;
  std::optional<std::int64_t> least_memory;  ///< bytes: of a device that has just room for the least budget known
  std::optional<LargestBatch> largest_batch;
};

struct LargestBatchOptions {
  /// The budget of the graph, in bytes of planned memory; 0 or less: it cannot fit.
  std::function<std::int64_t(const core::Graph&)> budget;
  /// The most that a step of it may cost; empty: as much as it may.
  std::function<std::int64_t(const Problem&)> max_cost;
  std::int64_t alignment = 0;   ///< of plans, in bytes; 0: default_alignment
  LeastBudgetOptions least;     ///< of one batch; its limit is for all together, and each gets a part of it
  std::int64_t most = 1 << 20;  ///< none larger is tried
  std::function<void(std::int64_t batch)> progress;
};

/// Doubles the batch until it does not fit, and halves the gap then: O(log batch) searches for the least budget, most
/// of which end at the first schedule that fits, or by the lower bound. `build`: the graph of a batch; what it throws
/// comes out.
LargestBatch find_largest_batch(const std::function<core::Graph(std::int64_t batch)>& build,
                                const solvers::SolverInfo& solver, const LargestBatchOptions& options);

}  // namespace cairn::pipeline
