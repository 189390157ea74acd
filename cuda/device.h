#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/runtime/scratch.h"

namespace cairn::cuda {

/// A GPU that CUDA_VISIBLE_DEVICES permits.
struct DeviceInfo {
  int ordinal = 0;  ///< index among the visible GPUs
  std::string name;
  std::int64_t total_bytes = 0;
  std::int64_t free_bytes = 0;  ///< bytes that were free when the device was probed
  int sm_major = 0;             ///< compute capability, sm_major.sm_minor
  int sm_minor = 0;
  int multiprocessors = 0;
  std::int64_t l2_bytes = 0;
};

/// Whether this build's kernels can run on this machine.
struct Probe {
  bool available = false;
  std::string reason;                ///< if not available, one line that says why and how to fix it; else empty
  std::optional<DeviceInfo> device;  ///< set if available
};

/// Returns whether Cairn can use the visible device with the index `ordinal`, and facts about this device. Never throws
/// and prints nothing. The first call in a process creates the CUDA context, which takes about 100 ms. Does not wait
/// for running kernels. May be called by several threads at once.
Probe probe(int ordinal = 0);
/// Returns the device that probe(ordinal) finds. If it is not available, throws DeviceError with Probe::reason.
DeviceInfo require_device(int ordinal = 0);
/// Returns the number of visible devices; 0 without a driver. Never throws.
int device_count();

struct Libraries;

/// A GPU that is ready to execute programs. For each shape of a matrix product or convolution, the kernel of the
/// vendor's library is chosen only once, so that the same op gives the same bits in every program. Executors refer to
/// the Device and must not outlive it. Only one thread may use a Device at a time. A call does not change the calling
/// thread's current CUDA device.
class Device {
 public:
  struct Options {
    int ordinal = 0;  ///< index of the device among the visible ones
    /// Largest workspace in bytes that a library may use for one op. The workspace is part of the op's scratch. A
    /// larger limit makes some matrix products faster, but the plan then needs more memory.
    std::int64_t workspace_limit_bytes = std::int64_t{32} << 20;
    /// Largest workspace in bytes that cuDNN may use for a convolution whose node has at least this much scratch in the
    /// graph (scratch_variants()). With 1 GiB, ResNet-50 with 128 images can use the implementations that cuDNN
    /// proposes first.
    std::int64_t large_workspace_limit_bytes = std::int64_t{1} << 30;
  };

  /// Opens the device that the options name. If it is not available, throws DeviceError with Probe::reason.
  explicit Device(const Options& options);
  Device() : Device(Options{}) {}
  Device(Device&&) noexcept;
  Device& operator=(Device&&) noexcept;
  ~Device();

  const DeviceInfo& info() const;
  std::int64_t free_bytes() const;
  /// Returns how convolutions are computed: "cuDNN", or "im2col, as " followed by the reason why cuDNN is not
  /// available.
  std::string convolutions() const;

  /// Returns the bytes of scratch that this device's kernels need for the op of node v, including the workspaces of
  /// libraries.
  std::int64_t scratch_bytes(const core::Graph& graph, core::NodeId v, bool tf32);
  /// Returns a copy of the graph in which every node with an op has scratch_bytes() as its scratch. A program for this
  /// device must be compiled from such a graph. Negative scratch is not changed; it means that an output takes over the
  /// storage of an input.
  core::Graph with_scratch(const core::Graph& graph, bool tf32);

  /// Returns the ways in which this device can execute the op of node v, which differ in scratch and time, sorted by
  /// ascending scratch. The way that is marked as usual needs scratch_bytes() bytes. A program executes the op in the
  /// fastest way for which the graph gives the node enough scratch. Only convolutions have more than one way.
  std::vector<runtime::ScratchVariant> scratch_variants(const core::Graph& graph, core::NodeId v, bool tf32);

  Libraries& libraries();  ///< the device's libraries, for the implementation

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::cuda
