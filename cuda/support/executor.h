#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cairn/cuda/device.h"
#include "cairn/runtime/executor.h"
#include "cairn/runtime/program.h"

namespace cairn::cuda {

/// How a step reaches the device.
enum class Launch : std::uint8_t {
  graph,   ///< captured once into a CUDA graph and replayed: one call per step
  stream,  ///< every kernel is launched again in every step, for example for a profiler that shows ranges
};

struct ExecutorOptions {
  std::uint64_t seed = 1;  ///< seed of the resident tensors' initial values
  bool poison = false;     ///< fills dead buffers with NaN, as runtime::ExecuteOptions::poison
  bool sentinels = false;  ///< checks the gap behind every buffer, as runtime::ExecuteOptions::sentinels
  Launch launch = Launch::graph;
  void* stream = nullptr;        ///< cudaStream_t that outlives the executor, not the default stream; nullptr: its own
  std::byte* arena = nullptr;    ///< device memory of the caller, aligned to 256 bytes; nullptr: one cudaMalloc
  std::int64_t arena_bytes = 0;  ///< size of the caller's memory
};

/// Options that a program for a device must be compiled with.
runtime::CompileOptions compile_options(Device& device, bool tf32, std::int64_t guard_bytes = 0);

/// Runs one program on a GPU. Owns the resident tensors and, unless the caller gave one, the arena. Within a step
/// nothing is allocated, freed or waited for: scratch and library workspaces are part of the arena. Each op is in an
/// NVTX range "kind node" while it is launched or captured, with "again" for a recomputation. Every call leaves the
/// calling thread's current device as it was.
class Executor final : public runtime::Executor {
 public:
  /// Allocates, fills and uploads the memory that the program needs. Then runs one step with a check after every node,
  /// so that a kernel that fails is known by its node, and captures the step. Waits for the device.
  /// Throws DeviceError if the memory does not suffice (asked, free, and the budget that would fit) or a kernel fails
  /// (names the node), InputError for a program that was not compiled for this device, and core::Error if an id or
  /// label is out of range or the first step overwrites a sentinel.
  Executor(Device& device, runtime::Program program, const ExecutorOptions& options = {});
  ~Executor() override;
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;

  const runtime::Program& program() const override;

  /// Runs one training step and waits for it. Seconds are the device's own, from the first kernel to the end of the
  /// last. With time_ops, the seconds of every instruction are also measured, within the replayed graph. Gives the same
  /// bits every time. Throws DeviceError if the step fails, core::Error if a sentinel was overwritten (names the node).
  runtime::StepReport run(bool time_ops = false) override;

  /// Enqueues one step on the stream and returns at once.
  void enqueue();

  /// Copies the outputs to the host, as runtime::Executor::outputs. Waits for the stream. Valid until the next call.
  std::vector<runtime::Output> outputs() override;
  std::vector<runtime::SinkDigest> sink_digests() override;

  /// Bytes that the constructor allocates on the device beside the arena: resident tensors and a little of its own.
  static std::int64_t bytes_beside_arena(const runtime::Program& program, bool sentinels);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::cuda
