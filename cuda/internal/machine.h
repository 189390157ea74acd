#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "cairn/core/machine/support/machine.h"
#include "cairn/core/machine/support/team.h"
#include "cairn/cuda/internal/launch_shape.h"
#include "cairn/cuda/internal/runtime.h"

namespace cairn::cuda {

/// Number of Teams (groups of cooperating threads) per thread block when they run the functor F.
template <class F>
inline constexpr int kTeamsOfBlock = teams_of_block(F::kThreads);

struct ArrayDeleter {
  int device = 0;
  cudaStream_t stream = nullptr;
  void operator()(std::byte* memory) const noexcept;
};

/// A Machine (core/machine/support/machine.h) on the GPU that was the thread's current device when the machine was
/// created. All work of the machine is enqueued on one stream. Only one thread may use a Machine at a time. A thread
/// must first call bind(), and keep the result while it uses the Machine. Functions throw DeviceError. launch() and
/// resident_teams() are defined in machine.cuh, which only .cu files can include.
class Machine {
 public:
  template <class T>
  using ArrayOf = core::Array<T, ArrayDeleter>;

  Machine();
  /// Uses the caller's stream, which must outlive the machine. With nullptr, the machine executes nothing and only
  /// serves to compute how much scratch ops need. A call of fill() is divided into fills of at most `most_fill_bytes`
  /// bytes each; tests choose a small number, so that this division is tested.
  explicit Machine(cudaStream_t stream, std::int64_t most_fill_bytes = kMostFillBytes);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  cudaStream_t stream() const { return stream_; }
  OnDevice bind() const { return OnDevice(device_); }

  template <class F>
  void launch(const F& functor, std::int64_t teams, std::int64_t shared_bytes = 0) const;
  template <class F>
  std::int64_t resident_teams(std::int64_t shared_bytes) const;
  std::int64_t shared_limit() const { return shared_limit_; }

  template <class T>
  ArrayOf<T> array(std::int64_t count) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::byte* memory = device_memory(count * static_cast<std::int64_t>(sizeof(T))).release();
    return {std::unique_ptr<std::byte[], ArrayDeleter>(memory, ArrayDeleter{device_, stream_}),
            reinterpret_cast<T*>(memory), count};
  }
  std::int64_t free_bytes() const;

  template <class T>
  void upload(const T* from, std::int64_t count, T* to) const {
    copy(from, to, count * static_cast<std::int64_t>(sizeof(T)), cudaMemcpyHostToDevice);
  }
  template <class T>
  void download(const T* from, std::int64_t count, T* to) const {
    copy(from, to, count * static_cast<std::int64_t>(sizeof(T)), cudaMemcpyDeviceToHost);
  }
  void fill(void* address, int byte, std::int64_t bytes) const;

  void exclusive_sum(const std::int32_t* in, std::int64_t* out, std::int64_t count);
  void exclusive_sum(const std::int64_t* in, std::int64_t* out, std::int64_t count);
  void sort_pairs(const std::uint64_t* keys, std::uint64_t* sorted_keys, const std::int32_t* values,
                  std::int32_t* sorted_values, std::int64_t count);
  std::int64_t select(const std::uint8_t* flags, std::int64_t count, std::int64_t* out);

  std::int64_t sort_workspace(std::int64_t count) const;
  void sort_by_key(const std::int32_t* keys, std::int32_t* sorted_keys, std::int32_t* sorted_places, std::int64_t count,
                   std::int64_t limit, void* workspace) const;

 private:
  /// Permits `kernel` to use `of_block` bytes of shared memory per block. Throws DeviceError if the device has less.
  void allow_shared(std::int64_t of_block, const void* kernel) const;
  /// Copies between host and device and waits for the copy, because the caller may release or read the host memory
  /// afterwards.
  void copy(const void* from, void* to, std::int64_t bytes, cudaMemcpyKind kind) const;
  /// Returns device memory of at least `bytes` bytes. The memory is valid until the next call, which reuses it.
  std::byte* workspace(std::int64_t bytes);
  /// Calls a function of CUB (NVIDIA's library of parallel algorithms) twice: first to get the size of its workspace,
  /// then with a workspace of this size. This template is defined in machine.cu.
  template <class Call>
  void with_workspace(const char* what, const Call& call);
  template <class T>
  void sum_up(const T* in, std::int64_t* out, std::int64_t count);

  int device_;
  Stream own_stream_;
  cudaStream_t stream_;
  std::int64_t shared_limit_;
  std::int64_t most_fill_bytes_ = kMostFillBytes;
  ArrayOf<std::byte> workspace_;
};

void launch_kernel(const void* kernel, const LaunchShape& shape, void** arguments, cudaStream_t stream);
/// Returns the number of blocks of a kernel that the device can run at the same time, but at least one per
/// multiprocessor.
std::int64_t resident_blocks(const void* kernel, const LaunchShape& shape);

/// Returns cudaSuccess if this build has code for the current device, otherwise cudaErrorNoKernelImageForDevice or
/// cudaErrorInvalidDeviceFunction.
cudaError_t kernel_image_status();

}  // namespace cairn::cuda
