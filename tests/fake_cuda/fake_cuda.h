#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

/// This is a fake CUDA runtime on the host, for tests of code that calls CUDA. runtime/fake_runtime.cpp defines the
/// functions of cudart, include/ replaces kernel launches, and fake_machine.cpp and fake_libraries.cpp replace the
/// vendor's libraries. Device memory is host memory. Tests choose when enqueued work runs, within the limits of what
/// CUDA allows (see Order). Each piece of work takes one microsecond of fake time. The fake runtime is not thread-safe.
namespace cairn::tests {
class FiberMachine;
}

namespace cairn::tests::fake {

inline constexpr std::int64_t kDeviceBytes = std::int64_t{1} << 32;

/// Makes the fake runtime behave as in a new process, with one device that has `device_bytes` of memory. It forgets
/// objects that are still alive, without freeing them.
void reset(std::int64_t device_bytes = kDeviceBytes);
void set_device_bytes(std::int64_t bytes);
/// Says when enqueued work runs. If a test passes in one order and fails in another, the tested code lacks a wait.
enum class Order {
  late,    ///< work runs only when the host waits for it; captured work runs in the order in which it was enqueued
  early,   ///< work runs as soon as CUDA allows; if several captured pieces may run, the latest runs first
  random,  ///< at each call, some work of random streams runs; captured work runs in a random order
};
/// Sets the order in which work runs. reset() does not change the order. Until the first call of this function, the
/// environment variable FAKE_CUDA_ORDER sets it to late (the default), early or random.
void set_order(Order order, std::uint64_t seed = 0);
Order order();

/// Sets whether a device is visible.
void set_available(bool available);
/// Sets the version that cudaDriverGetVersion returns: 1000 times the major version plus 10 times the minor version, or
/// 0 if there is no driver.
void set_driver_version(int version);
/// Sets the number of visible devices, which is 1 at first. Each stream and each event belongs to the device that was
/// current when the stream or event was made.
void set_device_count(int count);
/// Sets whether cuDNN is available.
void set_cudnn(bool available);

/// Returns the devices on which a stream was made, or memory was allocated, since the last reset().
std::set<int> used_devices();

/// Describes the objects that are alive, e.g. "2 allocations, 1 stream". Returns an empty text if there are none.
std::string alive();
std::int64_t allocated_bytes();
/// Returns the faults since reset(), one per line. Faults are: calls that are forbidden during a capture, copies
/// outside of allocations, freeing memory while work is pending, work on the default stream, calls for a device that is
/// not current, launches with more shared memory than the kernel was allowed, and setting the limit of shared memory of
/// a kernel twice.
std::string faults();
/// Returns how often each function was called. The name "kernel" counts kernel launches, matrix products, convolutions
/// and sorts.
std::map<std::string, std::int64_t> calls();
/// Returns the number of bytes of each call of cudaMemsetAsync since the last call of take_fills() or reset(), in the
/// order of the calls. It includes calls that were captured.
std::vector<std::int64_t> take_fills();
/// Returns the error that cudaGetLastError would return, but does not clear it.
cudaError_t last_error();

/// Makes the `nth` call of `function`, counted from now, return `error` and have no effect. But a function that frees
/// an object still frees it.
void fail_call(const std::string& function, std::int64_t nth, cudaError_t error = cudaErrorUnknown);
/// Makes the `nth` kernel, counted from now, fail. Then the next synchronisation of the kernel's stream returns
/// `error`, and so does every later call.
void fail_kernel(std::int64_t nth, cudaError_t error = cudaErrorIllegalAddress);

/// Makes the `nth` call of cudaStreamWaitEvent, counted from now, return success but not wait, as if the tested code
/// lacked this call.
void drop_wait(std::int64_t nth);

/// Runs `action` on the host right before the `nth` kernel, counted from now.
void before_kernel(std::int64_t nth, std::function<void()> action);

/// The fake runtime calls a MemoryWatch for every event of device memory outside of kernels: allocation, writing,
/// reading.
class MemoryWatch {
 public:
  virtual ~MemoryWatch() = default;
  virtual void allocated(void* memory, std::size_t bytes) = 0;
  virtual void freed(void* memory) = 0;
  virtual void written(void* memory, std::size_t bytes) = 0;
  /// Tells the watch that the bytes have lost their values. To read them before they are written again is a fault.
  virtual void forgotten(void* memory, std::size_t bytes) = 0;
  /// Returns the reason why reading these bytes is a fault, or an empty text if it is none.
  virtual std::string read(const void* memory, std::size_t bytes) = 0;
};
/// Sets the watch, or removes it if `watch` is nullptr. The watch must outlive all calls. reset() does not change the
/// watch.
void set_watch(MemoryWatch* watch);
/// Records a fault of a kernel. The next synchronisation of the kernel's stream fails, and so does every later call.
void fail_device(const std::string& what);
/// Tells the watch that a kernel of a library has written these bytes of device memory.
void note_written(void* memory, std::size_t bytes);
/// Sets byte values that mark memory as unwritten. The executor's options paint and poison fill memory with such bytes.
/// Filling memory with one of these values counts as losing the old contents. At first, there are no such values.
/// reset() does not change them.
void set_worthless_fills(std::vector<int> values);

/// Counts a call of `function`, which the fake runtime itself does not define. Returns the error with which this call
/// must fail, or cudaSuccess.
cudaError_t call(const std::string& function);
/// Enqueues `kernel` on the stream. The fake libraries use this function.
cudaError_t enqueue_kernel(cudaStream_t stream, std::function<void()> kernel);
/// Works like enqueue_kernel(), but throws a DeviceError that names the kernel as `what` if the call fails.
void enqueue(cudaStream_t stream, std::function<void()> kernel, const char* what);
/// Returns the number of bytes of shared memory that a block may have. Tests may change it before they make a Machine.
int& shared_of_block();
/// Records a fault if a launch uses more shared memory than the kernel was allowed. `of_block` is the number of bytes
/// of a block in this launch, and the address `kernel` identifies the kernel.
void require_shared(const void* kernel, std::int64_t of_block);
/// Returns, for each kernel on the current device, how many bytes of shared memory it was allowed. Kernels without an
/// entry may have 48 KiB. Lowering a kernel's limit, or setting it twice, is a fault. reset() does not change the
/// limits, because cuda/ sets the limit of each kernel only once in a process.
std::map<const void*, std::int64_t> allowed_shared();
/// Records a fault unless the address is a multiple of `alignment`.
void require_aligned(const void* address, std::uintptr_t alignment, const char* what);
bool has_cudnn();
/// Returns the machine that runs the kernels on the host.
FiberMachine& machine();

}  // namespace cairn::tests::fake
