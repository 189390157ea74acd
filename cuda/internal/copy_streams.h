#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/cuda/internal/runtime.h"
#include "cairn/cuda/internal/step.h"
#include "cairn/runtime/program.h"

namespace cairn::cuda {

/// Issues the copies of a program between device and host to separate streams: one for each direction or, if
/// `half_duplex`, one for both. Events order the copies relative to the instructions, also while a step is captured. If
/// the program has no copies, no streams are created. All streams and events are created by the constructor. Functions
/// throw DeviceError.
class CopyStreams {
 public:
  /// The program must outlive the object.
  CopyStreams(const runtime::Program& program, bool half_duplex);
  /// Waits for the copies, because they can still use memory that other destructors free afterwards.
  ~CopyStreams();
  CopyStreams(const CopyStreams&) = delete;
  CopyStreams& operator=(const CopyStreams&) = delete;

  /// Must be called at the beginning of each step, before start() and wait().
  void begin();
  /// Makes `stream`, the stream of the instructions, wait for the copies that must be complete before the instruction
  /// of `step` begins. A copy needs no wait if `stream` already waits for a later copy of the same copy stream.
  void wait(std::int64_t step, cudaStream_t stream);
  /// Issues the copies that start when the instruction of `step` has ended. `addresses` gives the addresses of tensors.
  void start(std::int64_t step, cudaStream_t stream, const MachineStep& addresses);
  /// Makes `stream`, the stream of the instructions, wait for all copies that were issued, because CUDA requires this
  /// before a capture ends. Ignores errors.
  void join_after_error(cudaStream_t stream) noexcept;

 private:
  struct Lane {
    Stream stream;
    std::int32_t awaited = -1;  ///< index of the last copy of this stream for which the instructions wait, or -1
    bool used = false;          ///< whether the stream takes part in the step
  };

  const runtime::Copy& copy(std::int32_t index) const { return program_.copies[static_cast<std::size_t>(index)]; }
  cudaEvent_t over(std::int32_t index) const { return over_[static_cast<std::size_t>(index)].get(); }
  std::size_t lane_of(const runtime::Copy& copy) const { return copy.is_evict() ? 0 : lanes_.size() - 1; }
  void issue(const runtime::Copy& one, const MachineStep& addresses);

  const runtime::Program& program_;
  std::vector<Lane> lanes_;
  std::vector<Event> over_;  ///< for each copy, an event that is recorded behind it
  /// Event that is recorded after each instruction for which copies must wait. One event suffices, because a wait
  /// refers to the latest record of the event at the time when the wait is issued.
  Event step_ended_;
};

}  // namespace cairn::cuda
