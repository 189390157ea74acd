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
  std::uint64_t seed = 1;  ///< seed of the resident tensors' initial values
  bool poison = false;     ///< fills a buffer with 0xFF (NaN) bytes when it dies: a read after free shows in the result
  bool sentinels = false;  ///< checks the gap behind every buffer after each step; needs a program with guard_bytes > 0
  /// Multiplies every element that an op computes or a resident starts with by 1 + rounding_noise * u, where u in [-1,
  /// 1) is a hash of node and element: shows what rounding of that size does to the outputs (Monte Carlo arithmetic).
  double rounding_noise = 0;
  /// Called before every step, for example for traces; an empty function costs nothing.
  std::function<void(const Instruction&)> before_step;
  std::int64_t reserved_bytes = 0;  ///< bytes of host memory that the caller takes besides while it executes
  bool op_delays = false;  ///< with time_ops: fills StepReport::op_delays; some microseconds per op, beside its time
};

/// Delays of an execution by other work on the machine; 0 on a device and where the system does not tell.
struct Delays {
  double seconds = 0;            ///< total time in which the process's threads were ready to run but had no core
  std::int64_t preemptions = 0;  ///< involuntary context switches of the process
  int threads = 0;               ///< number of threads that ran or waited meanwhile
};

/// Measurements of one execution of a program.
struct StepReport {
  double seconds = 0;
  /// Bytes of the arena up to the highest written one, rounded up to the plan's alignment. With poison, which writes
  /// everywhere, up to the highest address that a kernel was given.
  std::int64_t measured_peak_bytes = 0;
  std::int64_t live_peak_bytes = 0;  ///< most bytes in live buffers at once
  std::vector<double> op_seconds;    ///< seconds of each instruction, if asked for with time_ops
  Delays delays;
  std::vector<Delays> op_delays;  ///< delays of each instruction, if asked for with ExecuteOptions::op_delays
};

/// The bytes of one kept output or resident gradient after a step.
struct Output {
  core::NodeId node = core::kNoNode;
  std::int32_t output = 0;  ///< index among the node's outputs
  std::span<const std::byte> bytes;
};

/// Digest of an output that is neither read nor kept, so that its buffer is free again when its node has run.
struct SinkDigest {
  core::NodeId node = core::kNoNode;
  std::int32_t output = 0;
  std::uint64_t digest = 0;  ///< synthetic_digest of the output when its node last ran
  bool operator==(const SinkDigest&) const = default;
};

/// Runs one program on one machine and owns its memory there. Allocates nothing within a step. Only one thread may use
/// it at a time.
class Executor {
 public:
  virtual ~Executor() = default;

  virtual const Program& program() const = 0;

  /// Runs one training step and waits for it. Gives the same bits every time. Throws DeviceError if the step fails, and
  /// core::Error, which names the node, if a sentinel was overwritten.
  virtual StepReport run(bool time_ops = false) = 0;

  /// Returns every kept output (losses, gradients), ascending by node and output. A node that writes a resident shows
  /// the resident's bytes. Valid until the next call.
  virtual std::vector<Output> outputs() = 0;

  /// Returns a digest of every output that is neither read nor kept, ascending by node and output.
  virtual std::vector<SinkDigest> sink_digests() = 0;

 protected:
  Executor() = default;
  Executor(const Executor&) = default;
  Executor& operator=(const Executor&) = default;
};

/// Bytes of all kept outputs of a graph, resident ones included: the memory that a copy of them takes.
std::int64_t kept_bytes(const core::Graph& graph);

/// Throws MemoryError if an arena of that many bytes does not fit into memory beside the graph's resident tensors,
/// copies of its outputs, and what the caller takes besides. `least_bytes`: bytes that any arena needs, if known.
void require_host_memory(const core::Graph& graph, std::int64_t arena_bytes, std::int64_t reserved_bytes = 0,
                         std::int64_t least_bytes = 0);

/// Runs programs on this machine's CPU, with core::thread_count() threads. Throws MemoryError if arena and residents do
/// not fit into memory, InputError for a bad program.
std::unique_ptr<Executor> host_executor(Program program, const ExecuteOptions& options = {});

}  // namespace cairn::runtime
