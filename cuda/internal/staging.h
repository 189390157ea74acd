#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cairn/cuda/internal/runtime.h"

namespace cairn::cuda {

/// The path of one tensor's values to the device for the next step, while earlier steps run. The values are copied to
/// page-locked host memory, then, on a separate stream, to a buffer on the device. The next step begins with a copy
/// from this buffer to the tensor. The work on both streams must have ended before a Staging is destroyed.
class Staging {
 public:
  Staging(std::byte* target, std::int64_t bytes)
      : target_(target),
        bytes_(bytes),
        pinned_(pinned_memory(bytes)),
        arrived_(device_memory(bytes)),
        uploaded_(make_event()),
        taken_(make_event()) {}

  void upload(const void* values, cudaStream_t stream) {
    begin(stream);
    const auto bytes = static_cast<std::size_t>(bytes_);
    std::memcpy(pinned_.get(), values, bytes);
    check(cudaMemcpyAsync(arrived_.get(), pinned_.get(), bytes, cudaMemcpyHostToDevice, stream), "staging values");
    end(stream);
  }

  /// Stages values that are already in device memory: calls copy(to), which must enqueue a copy of the values to `to`
  /// on `stream`, and waits for this copy.
  template <class Copy>
  void upload_by(const Copy& copy, cudaStream_t stream) {
    begin(stream);
    copy(arrived_.get());
    check(cudaStreamSynchronize(stream), "staging values");
    end(stream);
  }

  /// Enqueues the copy from the buffer to the tensor on `stream`, the stream of the step, if values have been staged
  /// since the last call.
  void take(cudaStream_t stream) {
    if (!pending_) return;
    check(cudaStreamWaitEvent(stream, uploaded_.get(), 0), "waiting for staged values");
    check(cudaMemcpyAsync(target_, arrived_.get(), static_cast<std::size_t>(bytes_), cudaMemcpyDeviceToDevice, stream),
          "taking staged values");
    check(cudaEventRecord(taken_.get(), stream), "taking staged values");
    pending_ = false;
  }

  void drop() { pending_ = false; }

 private:
  /// Waits until the previous copy from the page-locked memory is complete. Makes `stream` wait until the step that
  /// takes the previous values has copied them from the buffer.
  void begin(cudaStream_t stream) {
    check(cudaEventSynchronize(uploaded_.get()), "waiting for staged values");
    check(cudaStreamWaitEvent(stream, taken_.get(), 0), "waiting for staged values");
  }
  void end(cudaStream_t stream) {
    check(cudaEventRecord(uploaded_.get(), stream), "staging values");
    pending_ = true;
  }

  std::byte* target_;
  std::int64_t bytes_;
  PinnedMemory pinned_;
  DeviceMemory arrived_;
  Event uploaded_, taken_;
  bool pending_ = false;
};

}  // namespace cairn::cuda
