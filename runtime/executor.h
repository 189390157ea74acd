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
  std::uint64_t seed = 1;  ///< seed of the initial values of resident tensors
  /// Whether to fill each buffer with bytes 0xFF (NaN) once it is freed, so that a read of freed memory shows in the
  /// result.
  bool poison = false;
  bool sentinels = false;  ///< checks the gap behind every buffer after each step; needs a program with guard_bytes > 0
  /// If above 0, every element that an op computes, and every initial element of a resident tensor, is multiplied by 1
  /// + rounding_noise * u. Here, u is a number in [-1, 1) that is computed from a hash of node and element. The outputs
  /// then show the effect of rounding errors of that size (Monte Carlo arithmetic).
  double rounding_noise = 0;
  /// Called before every step, for example to record a trace. An empty function costs nothing.
  std::function<void(const Instruction&)> before_step;
  std::int64_t reserved_bytes = 0;  ///< bytes of host memory that the caller itself needs during execution
  /// Whether to fill StepReport::op_delays if run() is called with time_ops. This takes some microseconds per op, which
  /// are not part of the op's measured time.
  bool op_delays = false;
};

/// How long other work on the machine delayed an execution. All fields are 0 on a GPU and where the system does not
/// report them.
struct Delays {
  double seconds = 0;            ///< total time in which threads of the process were ready to run but had no core
  std::int64_t preemptions = 0;  ///< involuntary context switches of the process
  int threads = 0;               ///< number of threads that ran or waited during the execution
};

/// Measurements of one execution of a program.
struct StepReport {
  double seconds = 0;
  std::int64_t live_peak_bytes = 0;  ///< largest number of bytes in live buffers at one step
  std::vector<double> op_seconds;    ///< seconds of each instruction, if run() was called with time_ops
  Delays delays;
  std::vector<Delays> op_delays;  ///< delays of each instruction, if ExecuteOptions::op_delays and time_ops were set
};

/// The bytes of one kept output or resident gradient after a step.
struct Output {
  core::NodeId node = core::kNoNode;
  std::int32_t output = 0;  ///< index among the node's outputs
  std::span<const std::byte> bytes;
};

/// Digest (a 64-bit hash) of an output that is neither read nor kept. The output's buffer is freed right after its node
/// has run, so comparisons of outputs use the digest instead of the bytes.
struct SinkDigest {
  core::NodeId node = core::kNoNode;
  std::int32_t output = 0;
  std::uint64_t digest = 0;  ///< digest of the output's bytes after its node ran for the last time
  bool operator==(const SinkDigest&) const = default;
};

/// Runs one program on the CPU or a GPU and owns its memory there. Allocates nothing within a step. Only one thread may
/// use an Executor at a time.
class Executor {
 public:
  virtual ~Executor() = default;

  virtual const Program& program() const = 0;

  /// Runs one training step and waits for its end. Every run gives the same bits. Throws DeviceError if the step fails.
  /// Throws core::Error, which names the node, if a step has written into a gap behind a buffer
  /// (ExecuteOptions::sentinels).
  virtual StepReport run(bool time_ops = false) = 0;

  /// Returns the number of bytes of the arena up to the highest byte that the steps so far have written, rounded up to
  /// the plan's alignment. With ExecuteOptions::poison, all bytes are overwritten, so written bytes say nothing. In
  /// that case, returns the number of bytes up to the end of the highest range that a kernel was given. Reads the whole
  /// arena.
  virtual std::int64_t measured_peak_bytes() = 0;

  /// Returns every kept output (losses, gradients), ascending by node and output. For a node that writes a resident
  /// tensor, returns the bytes of that tensor. The spans are valid until the next call of a member.
  virtual std::vector<Output> outputs() = 0;

  /// Returns the digests of all outputs that are neither read nor kept, ascending by node and output.
  virtual std::vector<SinkDigest> sink_digests() = 0;

 protected:
  Executor() = default;
  Executor(const Executor&) = default;
  Executor& operator=(const Executor&) = default;
};

/// Returns the total size in bytes of all kept outputs of a graph, including those in resident tensors. A copy of what
/// Executor::outputs() returns takes as many bytes.
std::int64_t kept_bytes(const core::Graph& graph);

/// Throws MemoryError if an arena of `arena_bytes` bytes does not fit into host memory together with the graph's
/// resident tensors, copies of its outputs, and `reserved_bytes` that the caller needs. `least_bytes` is the number of
/// bytes that every arena for the graph needs, if known.
void require_host_memory(const core::Graph& graph, std::int64_t arena_bytes, std::int64_t reserved_bytes = 0,
                         std::int64_t least_bytes = 0);

/// Returns an executor that runs the program on this machine's CPU with core::thread_count() threads. Throws
/// MemoryError if arena and residents do not fit into memory. Throws InputError for an invalid program.
std::unique_ptr<Executor> host_executor(Program program, const ExecuteOptions& options = {});

}  // namespace cairn::runtime
