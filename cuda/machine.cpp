#include "cairn/cuda/internal/machine.h"

#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "cairn/core/error.h"

namespace cairn::cuda {
namespace {

std::int64_t most_shared_bytes(int device) {
  int bytes = 0;
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "the shared memory's size");
  return dynamic_shared_limit(bytes);
}

}  // namespace

void ArrayDeleter::operator()(std::byte* memory) const noexcept {
  const OnDevice on(device, std::nothrow);
  if (cudaStreamSynchronize(stream) != cudaSuccess) cudaGetLastError();
  if (cudaFree(memory) != cudaSuccess) cudaGetLastError();
}

Machine::Machine()
    : device_(current_device()),
      own_stream_(make_stream()),
      stream_(own_stream_.get()),
      shared_limit_(most_shared_bytes(device_)) {}

Machine::Machine(cudaStream_t stream, std::int64_t most_fill_bytes)
    : device_(current_device()),
      stream_(stream),
      shared_limit_(most_shared_bytes(device_)),
      most_fill_bytes_(most_fill_bytes) {}

Machine::~Machine() {
  const OnDevice on(device_, std::nothrow);
  workspace_ = {};
  own_stream_.reset();
}

std::int64_t Machine::free_bytes() const {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "the device's free memory");
  return static_cast<std::int64_t>(free);
}

void Machine::copy(const void* from, void* to, std::int64_t bytes, cudaMemcpyKind kind) const {
  const char* what = kind == cudaMemcpyHostToDevice ? "a copy to the device" : "a copy from the device";
  if (bytes > 0) check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, stream_), what);
  check(cudaStreamSynchronize(stream_), what);
}

void Machine::fill(void* address, int byte, std::int64_t bytes) const {
  enqueue_fill(address, byte, bytes, stream_, most_fill_bytes_);
}

void Machine::allow_shared(std::int64_t of_block, const void* kernel) const {
  constexpr std::int64_t kFree = dynamic_shared_limit(48 * 1024);  // a block may use 48 KiB without an opt-in
  if (of_block > shared_limit_) {
    throw core::DeviceError("a kernel with " + std::to_string(of_block) +
                            " bytes of shared memory a block is too large for this device");
  }
  if (of_block <= kFree) return;
  // Sets the kernel's limit to the largest possible value, once per device. If each launch set the limit to what it
  // needs itself, it could lower the limit below the need of another launch of the same kernel, which is captured but
  // has not run yet, or which another thread makes. That launch would then fail.
  static std::mutex mutex;
  static std::set<std::pair<const void*, int>> allowed;
  const std::lock_guard lock(mutex);
  if (allowed.contains({kernel, device_})) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_limit_)),
        "the shared memory of a kernel");
  allowed.emplace(kernel, device_);
}

std::byte* Machine::workspace(std::int64_t bytes) {
  if (bytes > workspace_.size()) {
    workspace_ = {};
    workspace_ = array<std::byte>(bytes);
  }
  return workspace_.data();
}

}  // namespace cairn::cuda
