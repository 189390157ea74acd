#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cairn/runtime/arena.h"
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
};

/// What one execution of a program did.
struct StepReport {
  double seconds = 0;
  /// Bytes of the arena up to the highest one that was written, rounded up to the plan's alignment. With poison, which
  /// writes everywhere: up to the highest address that a kernel was given.
  std::int64_t measured_peak_bytes = 0;
  std::int64_t live_peak_bytes = 0;  ///< most bytes in live buffers at once
  std::vector<double> op_seconds;    ///< one an instruction, if asked for with time_ops
};

/// The bytes of one kept output or resident gradient after a step.
struct Output {
  core::NodeId node = core::kNoNode;
  std::span<const std::byte> bytes;
};

/// What a node that nobody reads and nobody keeps computed: its buffer is free again when the step ends.
struct SinkDigest {
  core::NodeId node = core::kNoNode;
  std::uint64_t digest = 0;  ///< synthetic_digest of its output when it last ran
  bool operator==(const SinkDigest&) const = default;
};

/// Runs programs on the host. Owns the arena and the resident tensors; nothing is allocated while a step runs.
class HostExecutor {
 public:
  /// Throws DeviceError when arena and residents do not fit into memory, InputError for a bad program.
  explicit HostExecutor(Program program, const ExecuteOptions& options = {});
  ~HostExecutor();
  HostExecutor(HostExecutor&&) noexcept;
  HostExecutor& operator=(HostExecutor&&) noexcept;

  const Program& program() const;

  /// One training step. The same bits every time. Throws core::Error when a sentinel was overwritten (names the node).
  StepReport run(bool time_ops = false);

  /// Every kept output (losses, gradients), ascending by node; a node that writes a resident shows the resident's
  /// bytes. Valid until the next run.
  std::vector<Output> outputs() const;

  /// Of every node without readers that is not kept, ascending by node. Valid until the next run.
  const std::vector<SinkDigest>& sink_digests() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::runtime
