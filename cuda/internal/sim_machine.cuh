#pragma once

#include <thrust/iterator/counting_iterator.h>

#include <cstddef>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <limits>
#include <memory>
#include <type_traits>

#include "cairn/core/error.h"
#include "cairn/core/machine/machine.h"
#include "cairn/cuda/internal/error.h"
#include "cairn/cuda/internal/handles.h"
#include "cairn/cuda/internal/launcher.cuh"

namespace cairn::cuda {

/// Sums in int64 whatever the type of the terms.
struct Plus {
  __host__ __device__ std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a + b; }
};

static_assert(kWarpsOfBlock == core::kWarpsOfBlock);

/// The Machine of sim/machine.h on a GPU: everything is enqueued on a stream of its own. For one thread at a time.
class SimMachine : public Launcher {
 public:
  template <class T>
  using ArrayOf = core::Array<T, RuntimeDeleter<&cudaFree>>;

  SimMachine() : own_stream_(make_stream()) { set_stream(own_stream_.get()); }

  /// Throws DeviceError that names the size where it does not fit.
  template <class T>
  ArrayOf<T> array(std::int64_t count) const {
    static_assert(std::is_trivially_copyable_v<T>);
    DeviceMemory memory = device_memory(count * static_cast<std::int64_t>(sizeof(T)));
    auto* data = reinterpret_cast<T*>(memory.get());
    return ArrayOf<T>(std::unique_ptr<std::byte[], RuntimeDeleter<&cudaFree>>(memory.release()), data, count);
  }
  template <class T>
  void upload(const T* from, std::int64_t count, T* to) const {
    if (count == 0) return;
    check(cudaMemcpyAsync(to, from, bytes_of<T>(count), cudaMemcpyHostToDevice, stream()), "an upload");
    check(cudaStreamSynchronize(stream()), "waiting for the device");  // `from` may be gone then
  }
  template <class T>
  void download(const T* from, std::int64_t count, T* to) const {
    if (count > 0) check(cudaMemcpyAsync(to, from, bytes_of<T>(count), cudaMemcpyDeviceToHost, stream()), "a download");
    check(cudaStreamSynchronize(stream()), "waiting for the device");
  }

  template <class T>
  void exclusive_sum(const T* in, std::int64_t* out, std::int64_t count) {
    fill(out, 0, static_cast<std::int64_t>(sizeof(std::int64_t)));
    with_workspace("a prefix sum", [&](void* workspace, std::size_t& bytes) {
      return cub::DeviceScan::InclusiveScan(workspace, bytes, in, out + 1, Plus{}, count, stream());
    });
  }
  void sort_pairs(const std::uint64_t* keys, std::uint64_t* sorted_keys, const std::int32_t* values,
                  std::int32_t* sorted_values, std::int64_t count) {
    with_workspace("a sort", [&](void* workspace, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(workspace, bytes, keys, sorted_keys, values, sorted_values, count, 0, 64,
                                             stream());
    });
  }
  std::int64_t select(const std::uint8_t* flags, std::int64_t count, std::int64_t* out) {
    if (count == 0) return 0;
    const auto found = array<std::int64_t>(1);
    with_workspace("a selection", [&](void* workspace, std::size_t& bytes) {
      return cub::DeviceSelect::Flagged(workspace, bytes, thrust::counting_iterator<std::int64_t>(0), flags, out,
                                        found.data(), count, stream());
    });
    std::int64_t number = 0;
    download(found.data(), 1, &number);
    return number;
  }

  std::int64_t free_bytes() const {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "the device's memory");
    return static_cast<std::int64_t>(free);
  }

 private:
  template <class T>
  static std::size_t bytes_of(std::int64_t count) {
    return static_cast<std::size_t>(count) * sizeof(T);
  }

  /// Calls a function of CUB twice: to learn its workspace, and with it. The workspace grows and is kept.
  template <class Call>
  void with_workspace(const char* what, const Call& call) {
    std::size_t bytes = 0;
    check(call(nullptr, bytes), what);
    if (static_cast<std::int64_t>(bytes) > workspace_.size()) {
      check(cudaStreamSynchronize(stream()), "waiting for the device");
      workspace_ = {};
      workspace_ = array<std::byte>(static_cast<std::int64_t>(bytes));
    }
    check(call(workspace_.data(), bytes), what);
  }

  Stream own_stream_;
  ArrayOf<std::byte> workspace_;
};

}  // namespace cairn::cuda
