#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/cuda/internal/runtime.h"
#include "cairn/cuda/internal/step.h"
#include "cairn/runtime/program.h"

namespace cairn::cuda {

/// Issues the copies of a program to streams of their own: one for each direction, or one for both. Events order them
/// with the stream of the instructions, also in a capture. There are no streams if there are no copies. Makes no stream
/// or event after the constructor. Throws DeviceError.
class CopyStreams {
 public:
  /// The program must outlive the object.
  CopyStreams(const runtime::Program& program, bool half_duplex);
  /// Waits, because copies can still use memory that other destructors free.
  ~CopyStreams();
  CopyStreams(const CopyStreams&) = delete;
  CopyStreams& operator=(const CopyStreams&) = delete;

  /// Begins a step.
  void begin();
  /// Makes the stream of the instructions wait for the copies that must be over before the instruction of `step`. A
  /// copy needs no wait if a later one of its stream was awaited.
  void wait(std::int64_t step, cudaStream_t stream);
  /// Issues the copies that start when the instruction of `step` has ended. `addresses` knows where tensors are.
  void start(std::int64_t step, cudaStream_t stream, const MachineStep& addresses);
  /// Makes the stream of the instructions wait for all copies that were issued, because a capture must not end before.
  /// Ignores errors.
  void join_after_error(cudaStream_t stream) noexcept;

 private:
  struct Lane {
    Stream stream;
    std::int32_t awaited = -1;  ///< index of the last copy for which the instructions wait, or -1
    bool used = false;          ///< whether the stream takes part in the step
  };

  const runtime::Copy& copy(std::int32_t index) const { return program_.copies[static_cast<std::size_t>(index)]; }
  cudaEvent_t over(std::int32_t index) const { return over_[static_cast<std::size_t>(index)].get(); }
  std::size_t lane_of(const runtime::Copy& copy) const { return copy.is_evict() ? 0 : lanes_.size() - 1; }
  void issue(const runtime::Copy& one, const MachineStep& addresses);

  const runtime::Program& program_;
  std::vector<Lane> lanes_;
  std::vector<Event> over_;  ///< for each copy, an event behind it
  /// Event that is recorded after each step for which copies have to wait. One event is enough, because a wait refers
  /// to the event's latest record at the time when the wait is issued.
  Event step_ended_;
};

}  // namespace cairn::cuda
