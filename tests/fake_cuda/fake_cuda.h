#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

/// A CUDA runtime on the host, for tests of code that calls it. runtime/fake_runtime.cpp defines the functions of
/// cudart, include/ the launches, and fake_machine.cpp the libraries behind them. Device memory is host memory. When
/// the work of streams runs, and the order of captured work, are chosen within what CUDA allows (Order). Time is
/// counted in work: each piece takes a microsecond. Not thread-safe.
namespace cairn::tests {
class FiberMachine;
}

namespace cairn::tests::fake {

inline constexpr std::int64_t kDeviceBytes = std::int64_t{1} << 32;

/// Starts as a new process on a device of this size, without any call so far. Live objects are forgotten, not freed.
void reset(std::int64_t device_bytes = kDeviceBytes);
void set_device_bytes(std::int64_t bytes);
/// When enqueued work runs. Tests that pass in one order and fail in another lack a wait.
enum class Order {
  late,    ///< only when somebody waits for it; captured work as it was enqueued
  early,   ///< as soon as it may; of captured work that may run, the latest first
  random,  ///< some of it at each call, of random streams; captured work in a random order
};
/// Sets the order. At first it is the one that FAKE_CUDA_ORDER in the environment names, or late. reset() keeps it.
void set_order(Order order, std::uint64_t seed = 0);
Order order();

/// Whether a device is visible.
void set_available(bool available);
/// Sets the result of cudaDriverGetVersion: 1000 times the major version plus 10 times the minor; 0: no driver.
void set_driver_version(int version);
/// Sets the number of visible devices; 1 at first. Each stream and event belongs to the device that was current when it
/// was made.
void set_device_count(int count);
/// Whether cuDNN is available.
void set_cudnn(bool available);

/// Returns the devices on which a stream was made or memory allocated since the reset.
std::set<int> used_devices();

/// Describes the live objects, e.g. "2 allocations, 1 stream"; empty when there are none.
std::string alive();
std::int64_t allocated_bytes();
/// Faults so far, one per line: calls that a capture forbids, copies outside of allocations, memory freed while work is
/// pending, work on the default stream, calls for one device while another one is current, launches with more shared
/// memory than the kernel was allowed, kernels that are allowed some twice.
std::string faults();
/// Number of calls of every function. "kernel" stands for launches, products, convolutions and sorts.
std::map<std::string, std::int64_t> calls();
/// The error that cudaGetLastError would return; does not clear it.
cudaError_t last_error();

/// Makes the nth call of `function` from now on return `error` and do nothing; functions that free still free.
void fail_call(const std::string& function, std::int64_t nth, cudaError_t error = cudaErrorUnknown);
/// Makes the nth kernel from now on fail: its stream's next synchronisation and every later call return the error.
void fail_kernel(std::int64_t nth, cudaError_t error = cudaErrorIllegalAddress);

/// Runs `action` right before the nth kernel from now on.
void before_kernel(std::int64_t nth, std::function<void()> action);

/// Is told of all that happens to device memory outside of kernels.
class MemoryWatch {
 public:
  virtual ~MemoryWatch() = default;
  virtual void allocated(void* memory, std::size_t bytes) = 0;
  virtual void freed(void* memory) = 0;
  virtual void written(void* memory, std::size_t bytes) = 0;
  /// The bytes have no value any more: to read them before they are written again is wrong.
  virtual void forgotten(void* memory, std::size_t bytes) = 0;
  /// Returns what is wrong with reading the bytes; empty: nothing.
  virtual std::string read(const void* memory, std::size_t bytes) = 0;
};
/// Sets the watch, which must outlive all calls; nullptr: none. reset() keeps it.
void set_watch(MemoryWatch* watch);
/// Records a fault of a kernel: its stream's next synchronisation and every later call fail.
void fail_device(const std::string& what);
/// Tells the watch that a library's kernel has written device memory.
void note_written(void* memory, std::size_t bytes);
/// Sets the values with which fills make memory worthless instead of giving it a value, as an executor's paint and
/// poison do. There are none at first. reset() keeps them.
void set_worthless_fills(std::vector<int> values);

/// Counts a call of a function that the fake runtime does not define, and returns the error with which it must fail.
cudaError_t call(const std::string& function);
/// Enqueues a kernel; for the fake libraries.
cudaError_t enqueue_kernel(cudaStream_t stream, std::function<void()> kernel);
/// Enqueues a kernel, for the fake libraries. Throws DeviceError, which names the kernel as `what`, if that fails.
void enqueue(cudaStream_t stream, std::function<void()> kernel, const char* what);
/// Bytes of shared memory that a block may have. May be changed before a Machine is made.
int& shared_of_block();
/// Records a fault where a kernel, identified by an address, gets more shared memory than it was allowed so far.
void require_shared(const void* kernel, std::int64_t of_block);
/// Bytes of shared memory that kernels were allowed on the current device, for those that were ever allowed more than
/// 48 KiB. Lowering a kernel's limit, or setting it twice, is a fault. reset() keeps these, as a kernel asks once per
/// process.
std::map<const void*, std::int64_t> allowed_shared();
/// Records a fault unless the address is a multiple of `alignment`.
void require_aligned(const void* address, std::uintptr_t alignment, const char* what);
bool has_cudnn();
/// The machine that computes the kernels.
FiberMachine& machine();

}  // namespace cairn::tests::fake
