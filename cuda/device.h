#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cairn::cuda {

/// The GPU that Cairn would run on: the first one visible (CUDA_VISIBLE_DEVICES chooses).
struct DeviceInfo {
  std::string name;
  std::int64_t total_bytes = 0;
  std::int64_t free_bytes = 0;  ///< at the time of the probe
  int sm_major = 0;             ///< compute capability
  int sm_minor = 0;
  int multiprocessors = 0;
};

/// Whether kernels of this build can run here.
struct Probe {
  bool available = false;
  std::string reason;                ///< why not, in one line that says how to mend it; empty when available
  std::optional<DeviceInfo> device;  ///< set when available
};

/// Looks for a usable device; never throws and prints nothing. The first call in a process creates the CUDA context
/// (some 100 ms). Synchronises nothing. Thread-safe.
Probe probe();

}  // namespace cairn::cuda
