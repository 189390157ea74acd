#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cairn/core/graph.h"

namespace cairn::cuda {

/// The GPU that Cairn runs on, which is the first visible one (CUDA_VISIBLE_DEVICES chooses).
struct DeviceInfo {
  std::string name;
  std::int64_t total_bytes = 0;
  std::int64_t free_bytes = 0;  ///< bytes that were free when the device was probed
  int sm_major = 0;             ///< compute capability, sm_major.sm_minor
  int sm_minor = 0;
  int multiprocessors = 0;
  std::int64_t l2_bytes = 0;
};

/// Whether kernels of this build can run here.
struct Probe {
  bool available = false;
  std::string reason;                ///< why not, in one line that says how to mend it; empty if available
  std::optional<DeviceInfo> device;  ///< set if available
};

/// Looks for a usable device; never throws and prints nothing. The first call in a process creates the CUDA context
/// (some 100 ms). Synchronises nothing. Thread-safe.
Probe probe();

struct Libraries;

/// A GPU that is ready to execute. Its libraries are started, and their choices for each shape are remembered, so that
/// the same op gives the same bits in every program. Executors refer to it and must not outlive it. Only one thread may
/// use it at a time. That thread's current device may be any other, and every call leaves it as it was.
class Device {
 public:
  struct Options {
    /// Most bytes of workspace that a library may take for one op. Workspace becomes the op's scratch: more makes some
    /// products faster, and the plan taller.
    std::int64_t workspace_limit_bytes = std::int64_t{32} << 20;
  };

  /// Takes the first visible device. Throws DeviceError with the probe's reason if there is none.
  explicit Device(const Options& options);
  Device() : Device(Options{}) {}
  Device(Device&&) noexcept;
  Device& operator=(Device&&) noexcept;
  ~Device();

  const DeviceInfo& info() const;
  /// Bytes that an allocation could get now.
  std::int64_t free_bytes() const;
  /// Names the implementation of convolutions. Returns "cuDNN", or "im2col, as " followed by why there is no cuDNN.
  std::string convolutions() const;

  /// Bytes of scratch that this device's kernels need for the op of v, library workspaces included.
  std::int64_t scratch_bytes(const core::Graph& graph, core::NodeId v, bool tf32);
  /// Returns the graph with scratch_bytes() as the scratch of every node that has an op, as a program for this device
  /// needs it. A node with negative scratch (in place) keeps it.
  core::Graph with_scratch(const core::Graph& graph, bool tf32);

  Libraries& libraries();  ///< the device's libraries, for the implementation

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::cuda
