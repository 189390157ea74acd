#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

#include "cairn/core/error.h"

/// This file has helpers for the CUDA runtime: checks of errors, the choice of the current device, and owners of
/// handles.
namespace cairn::cuda {

/// Throws DeviceError "<what>: <CUDA's text for the status>" unless `status` is success. Clears the error, so that the
/// next cudaGetLastError does not return it.
inline void check(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw core::DeviceError(std::string(what) + ": " + cudaGetErrorString(status));
}

inline int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), "the current device");
  return device;
}

/// Makes a device the thread's current device; the destructor restores the previous one. Every function that allocates,
/// launches or frees something on a device holds such an object, because its caller may use another device.
class OnDevice {
 public:
  explicit OnDevice(int device) : OnDevice(device, std::nothrow) { check(status_, "choosing the device"); }
  /// Does not throw if the device cannot be selected, because destructors use this constructor. status() says whether
  /// it was selected.
  OnDevice(int device, std::nothrow_t) noexcept : status_(cudaGetDevice(&before_)) {
    if (status_ == cudaSuccess && before_ != device) {
      status_ = cudaSetDevice(device);
      changed_ = status_ == cudaSuccess;
    }
    if (status_ != cudaSuccess) cudaGetLastError();
  }
  ~OnDevice() {
    if (changed_ && cudaSetDevice(before_) != cudaSuccess) cudaGetLastError();
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  cudaError_t status() const { return status_; }

 private:
  int before_ = 0;
  bool changed_ = false;
  cudaError_t status_;
};

template <auto kDestroy>
struct RuntimeDeleter {
  template <typename T>
  void operator()(T* handle) const noexcept {
    if (kDestroy(handle) != cudaSuccess) cudaGetLastError();  // otherwise the next call would report this error
  }
};

template <typename Handle, auto kDestroy>
using RuntimeOwner = std::unique_ptr<std::remove_pointer_t<Handle>, RuntimeDeleter<kDestroy>>;

using Stream = RuntimeOwner<cudaStream_t, &cudaStreamDestroy>;
using Event = RuntimeOwner<cudaEvent_t, &cudaEventDestroy>;
using CapturedGraph = RuntimeOwner<cudaGraph_t, &cudaGraphDestroy>;
using GraphExec = RuntimeOwner<cudaGraphExec_t, &cudaGraphExecDestroy>;
using DeviceMemory = RuntimeOwner<std::byte*, &cudaFree>;
using PinnedMemory = RuntimeOwner<std::byte*, &cudaFreeHost>;

/// Creates a stream that does not wait for the default stream. Throws DeviceError.
inline Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a CUDA stream");
  return Stream(stream);
}

/// Creates an event. `flags` are those of cudaEventCreateWithFlags; cudaEventDefault creates an event that records the
/// time. Throws DeviceError.
inline Event make_event(unsigned flags = cudaEventDisableTiming) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, flags), "a CUDA event");
  return Event(event);
}

/// Allocates uninitialised device memory, aligned to 256 bytes. Returns an empty owner for 0 bytes. Throws DeviceError,
/// which names the size.
inline DeviceMemory device_memory(std::int64_t bytes) {
  void* memory = nullptr;
  if (bytes > 0)
    check(cudaMalloc(&memory, static_cast<std::size_t>(bytes)), std::to_string(bytes) + " bytes of device memory");
  return DeviceMemory(static_cast<std::byte*>(memory));
}

/// Largest number of bytes that one call of cudaMemsetAsync fills. The number fits into 32 bits, so that no fill
/// depends on how a driver treats larger sizes.
inline constexpr std::int64_t kMostFillBytes = std::int64_t{1} << 31;

/// Enqueues fills that set `bytes` bytes of device memory to the value `byte`. Each fill has at most `most` bytes.
/// Throws DeviceError.
inline void enqueue_fill(void* memory, int byte, std::int64_t bytes, cudaStream_t stream,
                         std::int64_t most = kMostFillBytes) {
  auto* const begin = static_cast<std::byte*>(memory);
  for (std::int64_t done = 0; done < bytes; done += most) {
    const auto piece = static_cast<std::size_t>(std::min(most, bytes - done));
    check(cudaMemsetAsync(begin + done, byte, piece, stream), "filling memory");
  }
}

/// Allocates uninitialised page-locked host memory, which the device can access directly. Returns an empty owner for 0
/// bytes. Throws DeviceError, which names the size.
inline PinnedMemory pinned_memory(std::int64_t bytes) {
  void* memory = nullptr;
  if (bytes > 0)
    check(cudaMallocHost(&memory, static_cast<std::size_t>(bytes)), std::to_string(bytes) + " bytes of pinned memory");
  return PinnedMemory(static_cast<std::byte*>(memory));
}

/// Waits for a stream in its destructor, because enqueued work can still use memory that the destructors of other
/// members free afterwards.
class WaitAtEnd {
 public:
  explicit WaitAtEnd(const cudaStream_t& stream) : stream_(stream) {}
  ~WaitAtEnd() {
    if (stream_ != nullptr && cudaStreamSynchronize(stream_) != cudaSuccess) cudaGetLastError();
  }
  WaitAtEnd(const WaitAtEnd&) = delete;
  WaitAtEnd& operator=(const WaitAtEnd&) = delete;

 private:
  const cudaStream_t& stream_;
};

}  // namespace cairn::cuda
