#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

/// A fake CUDA runtime on the host, for tests of code that calls CUDA. runtime/fake_runtime.cpp defines the functions
/// of cudart, include/ replaces launches, and fake_machine.cpp and fake_libraries.cpp replace the vendor's libraries.
/// Device memory is host memory. Tests choose when enqueued work runs, within what CUDA allows (Order). Each piece of
/// work takes one microsecond of fake time. The fake runtime is not thread-safe.
namespace cairn::tests {
class FiberMachine;
}

namespace cairn::tests::fake {

inline constexpr std::int64_t kDeviceBytes = std::int64_t{1} << 32;

/// Makes the runtime behave as in a new process, on a device with this much memory. Live objects are forgotten, not
/// freed.
void reset(std::int64_t device_bytes = kDeviceBytes);
void set_device_bytes(std::int64_t bytes);
/// When enqueued work runs. If a test passes in one order and fails in another, the tested code lacks a wait.
enum class Order {
  late,    ///< work runs only when the host waits for it; captured work runs in the order of enqueuing
  early,   ///< work runs as soon as it may; of captured work that may run, the latest runs first
  random,  ///< each call runs some work of random streams; captured work runs in a random order
};
/// Sets the order, which reset() keeps. Until the first call, the variable FAKE_CUDA_ORDER of the environment decides:
/// late (the default), early or random.
void set_order(Order order, std::uint64_t seed = 0);
Order order();

/// Sets whether a device is visible.
void set_available(bool available);
/// Sets the result of cudaDriverGetVersion: 1000 times the major version plus 10 times the minor; 0: no driver.
void set_driver_version(int version);
/// Sets the number of visible devices; 1 at first. Each stream and event belongs to the device that was current when it
/// was made.
void set_device_count(int count);
/// Sets whether cuDNN is available.
void set_cudnn(bool available);

/// Returns the devices on which a stream was made or memory allocated since the reset.
std::set<int> used_devices();

/// Describes the live objects, e.g. "2 allocations, 1 stream"; empty when there are none.
std::string alive();
std::int64_t allocated_bytes();
/// Returns the faults so far, one per line: calls that a capture forbids, copies outside of allocations, memory freed
/// while work is pending, work on the default stream, calls for one device while another one is current, launches with
/// more shared memory than the kernel was allowed, and a second permission of shared memory for the same kernel.
std::string faults();
/// Returns the number of calls of each function. "kernel" stands for launches, products, convolutions and sorts.
std::map<std::string, std::int64_t> calls();
/// Returns the bytes of each call of cudaMemsetAsync since the last call of this function or of reset(), in the order
/// of the calls. Captured calls are included.
std::vector<std::int64_t> take_fills();
/// Returns the error that cudaGetLastError would return, but does not clear it.
cudaError_t last_error();

/// Makes the nth call of `function`, counted from now, return `error` and do nothing else. A function that frees
/// something still frees it.
void fail_call(const std::string& function, std::int64_t nth, cudaError_t error = cudaErrorUnknown);
/// Makes the nth kernel, counted from now, fail. The next synchronisation of its stream, and every later call, return
/// the error.
void fail_kernel(std::int64_t nth, cudaError_t error = cudaErrorIllegalAddress);

/// Makes the nth call of cudaStreamWaitEvent, counted from now, succeed without any effect, as if the code lacked this
/// wait.
void drop_wait(std::int64_t nth);

/// Runs `action` right before the nth kernel, counted from now.
void before_kernel(std::int64_t nth, std::function<void()> action);

/// Receives a call for everything that happens to device memory outside of kernels.
class MemoryWatch {
 public:
  virtual ~MemoryWatch() = default;
  virtual void allocated(void* memory, std::size_t bytes) = 0;
  virtual void freed(void* memory) = 0;
  virtual void written(void* memory, std::size_t bytes) = 0;
  /// Called when the bytes have lost their values. It is a fault to read them before they are written again.
  virtual void forgotten(void* memory, std::size_t bytes) = 0;
  /// Returns what is wrong with reading the bytes, or an empty text.
  virtual std::string read(const void* memory, std::size_t bytes) = 0;
};
/// Sets the watch, which must outlive all calls; nullptr: none. reset() keeps it.
void set_watch(MemoryWatch* watch);
/// Records a fault of a kernel: its stream's next synchronisation and every later call fail.
void fail_device(const std::string& what);
/// Tells the watch that a library's kernel has written device memory.
void note_written(void* memory, std::size_t bytes);
/// Sets byte values that mark memory as unwritten: filling memory with one of them, as an executor's paint and poison
/// do, counts as forgetting the old values. There are none at first. reset() keeps them.
void set_worthless_fills(std::vector<int> values);

/// Counts a call of a function that the fake runtime does not define. Returns the error with which this call must fail,
/// or cudaSuccess.
cudaError_t call(const std::string& function);
/// Enqueues a kernel. Used by the fake libraries.
cudaError_t enqueue_kernel(cudaStream_t stream, std::function<void()> kernel);
/// Enqueues a kernel, for the fake libraries. Throws DeviceError, which names the kernel as `what`, if that fails.
void enqueue(cudaStream_t stream, std::function<void()> kernel, const char* what);
/// Returns the bytes of shared memory that a block may have. A test may change the number before it makes a Machine.
int& shared_of_block();
/// Records a fault if `of_block`, the bytes of shared memory of a launch, is more than the kernel was allowed. `kernel`
/// is an address that identifies the kernel.
void require_shared(const void* kernel, std::int64_t of_block);
/// Returns the bytes of shared memory that kernels were allowed on the current device. Kernels without an entry may
/// have 48 KiB. It is a fault to lower a kernel's limit or to set it twice. reset() keeps the limits, because each
/// kernel asks only once in a process.
std::map<const void*, std::int64_t> allowed_shared();
/// Records a fault unless the address is a multiple of `alignment`.
void require_aligned(const void* address, std::uintptr_t alignment, const char* what);
bool has_cudnn();
/// Returns the machine that runs the kernels.
FiberMachine& machine();

}  // namespace cairn::tests::fake
