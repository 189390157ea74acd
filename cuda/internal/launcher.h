#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace cairn::cuda {

/// Most bytes of dynamic shared memory that a launch may ask for, a few KB below the device's own limit: reductions
/// keep some beside. Throws DeviceError.
std::int64_t most_shared_bytes();

/// Spreads functors over the GPU: everything is enqueued on one stream, nothing waits. launch() is defined in
/// launcher.cuh, for .cu files.
class Launcher {
 public:
  Launcher() : shared_limit_(most_shared_bytes()) {}

  cudaStream_t stream() const { return stream_; }
  void set_stream(cudaStream_t stream) { stream_ = stream; }

  /// functor(team, index) for every index in [0, teams). F::kThreads, the threads of a team: 1, 32 (a warp) or a
  /// multiple of 32 up to 1024 (a block). Throws DeviceError.
  template <class F>
  void launch(const F& functor, std::int64_t teams, std::int64_t shared_bytes = 0) const;
  /// Teams of such a launch that the device runs at once.
  template <class F>
  std::int64_t resident_teams(std::int64_t shared_bytes) const;

  void fill(void* address, int byte, std::int64_t bytes) const;
  std::int64_t shared_limit() const { return shared_limit_; }

 private:
  cudaStream_t stream_ = nullptr;
  std::int64_t shared_limit_ = 0;
};

}  // namespace cairn::cuda
