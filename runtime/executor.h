#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cairn/runtime/program.h"

namespace cairn::runtime {

struct ExecuteOptions {
  std::uint64_t seed = 1;  ///< of the resident tensors' initial values
  bool poison = false;     ///< fills a buffer with 0xFF (NaN) bytes when it dies: a read after free shows in the result
  bool sentinels = false;  ///< needs a program with guard_bytes > 0: checks the gap behind every buffer after each step
  /// Multiplies every element that an op or a resident's initial value gives by 1 + rounding_noise * u, u in [-1, 1) a
  /// hash of node and element: what rounding of that size does to the outputs (Monte Carlo arithmetic).
  double rounding_noise = 0;
  /// Called before every step, e.g. for traces; an empty function costs nothing.
  std::function<void(const Instruction&)> before_step;
  std::int64_t reserved_bytes = 0;  ///< of the host's memory, which the caller takes besides while it executes
  bool op_delays = false;           ///< with time_ops: StepReport::op_delays, some microseconds an op, beside its time
};

/// What other work of the machine took from an execution; 0 on a device and where the system does not tell.
struct Delays {
  double seconds = 0;            ///< the process's threads, together, were ready to run and had no core
  std::int64_t preemptions = 0;  ///< involuntary context switches of the process
  int threads = 0;               ///< that ran or waited meanwhile
};

/// What one execution of a program did.
struct StepReport {
  double seconds = 0;
  /// Bytes of the arena up to the highest one that was written, rounded up to the plan's alignment. With poison, which
  /// writes everywhere: up to the highest address that a kernel was given.
  std::int64_t measured_peak_bytes = 0;
  std::int64_t live_peak_bytes = 0;  ///< most bytes in live buffers at once
  std::vector<double> op_seconds;    ///< one an instruction, if asked for with time_ops
  Delays delays;
  std::vector<Delays> op_delays;  ///< one an instruction, if asked for with ExecuteOptions::op_delays
};

/// The bytes of one kept output or resident gradient after a step.
struct Output {
  core::NodeId node = core::kNoNode;
  std::int32_t output = 0;  ///< which one of the node's
  std::span<const std::byte> bytes;
};

/// What an output that nobody reads and nobody keeps held: its buffer is free again when its node has run.
struct SinkDigest {
  core::NodeId node = core::kNoNode;
  std::int32_t output = 0;
  std::uint64_t digest = 0;  ///< synthetic_digest of it when its node last ran
  bool operator==(const SinkDigest&) const = default;
};

/// Runs one program on one machine; owns its memory there. Within a step nothing is allocated. For one thread at a
/// time.
class Executor {
 public:
  virtual ~Executor() = default;

  virtual const Program& program() const = 0;

  /// One training step; waits for it. The same bits every time. Throws DeviceError when the step fails, core::Error
  /// when a sentinel was overwritten (names the node).
  virtual StepReport run(bool time_ops = false) = 0;

  /// Every kept output (losses, gradients), ascending by node and output; a node that writes a resident shows the
  /// resident's bytes. Valid until the next call.
  virtual std::vector<Output> outputs() = 0;

  /// Of every output without readers that is not kept, ascending by node and output.
  virtual std::vector<SinkDigest> sink_digests() = 0;

 protected:
  Executor() = default;
  Executor(const Executor&) = default;
  Executor& operator=(const Executor&) = default;
};

/// Bytes of the outputs that a graph keeps, resident ones included: what a copy of them takes.
std::int64_t kept_bytes(const core::Graph& graph);

/// Throws MemoryError where an arena of that many bytes does not fit into memory beside the graph's resident tensors,
/// copies of its outputs, and what the caller takes besides. `least_bytes`: of any arena, where that is known.
void require_host_memory(const core::Graph& graph, std::int64_t arena_bytes, std::int64_t reserved_bytes = 0,
                         std::int64_t least_bytes = 0);

/// Runs programs on this machine's CPU, with core::thread_count() threads.
/// Throws MemoryError when arena and residents do not fit into memory, InputError for a bad program.
std::unique_ptr<Executor> host_executor(Program program, const ExecuteOptions& options = {});

}  // namespace cairn::runtime
