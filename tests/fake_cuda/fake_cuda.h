#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

/// A CUDA runtime on the host, for tests of what calls it: fake_runtime.cpp defines the functions of cudart,
/// include/ launches, and fake_machine.cpp the libraries behind them. Device memory is host memory. Work on a stream
/// runs when somebody waits for it and no sooner, as it may on a device. A captured graph is a list of work that is
/// replayed. Time is counted in work: each piece takes a microsecond. For one thread.
namespace cairn::tests {
class FiberMachine;
}

namespace cairn::tests::fake {

inline constexpr std::int64_t kDeviceBytes = std::int64_t{1} << 32;

/// A new process on a device of this size: nothing was ever called. What is alive is forgotten, not freed.
void reset(std::int64_t device_bytes = kDeviceBytes);
void set_device_bytes(std::int64_t bytes);
/// Whether a device is visible.
void set_available(bool available);
/// As cudaDriverGetVersion gives it: 1000 times the major version, 10 times the minor; 0: there is no driver.
void set_driver_version(int version);
/// How many devices are visible; 1 at first. Each stream and event belongs to the one that was current when it was
/// made.
void set_device_count(int count);
/// Whether there is a cuDNN.
void set_cudnn(bool available);

/// What is alive, e.g. "2 allocations, 1 stream"; empty when nothing is.
std::string alive();
std::int64_t allocated_bytes();
/// What no program may do, one a line: calls that a capture forbids, copies outside of allocations, memory that is
/// freed while work is pending, work on the default stream, calls for one device while another one is current,
/// launches with more shared memory than the kernel was allowed, kernels that are allowed some twice.
std::string faults();
/// How often every function was called. "kernel" stands for launches, products, convolutions and sorts.
std::map<std::string, std::int64_t> calls();
/// The error that cudaGetLastError would give; does not clear it.
cudaError_t last_error();

/// The nth call of `function` from now on returns `error` and does nothing, but for functions that let go of something.
void fail_call(const std::string& function, std::int64_t nth, cudaError_t error = cudaErrorUnknown);
/// The nth kernel to run from now on fails: its stream's next synchronisation and every call after that say so.
void fail_kernel(std::int64_t nth, cudaError_t error = cudaErrorIllegalAddress);

/// Runs `action` right before the nth kernel to run from now on.
void before_kernel(std::int64_t nth, std::function<void()> action);

/// For the fakes of what enqueues kernels.
cudaError_t enqueue_kernel(cudaStream_t stream, std::function<void()> kernel);
/// Records a fault where a kernel, known by an address, is given more shared memory than it was allowed by then.
void require_shared(const void* kernel, std::int64_t of_block);
/// Bytes of shared memory that kernels were allowed, of those that were ever allowed more than 48 KiB: one for each. A
/// kernel's is never lowered and set but once, which are faults. Not forgotten by reset(), as a kernel asks once a
/// process.
std::map<const void*, std::int64_t> allowed_shared();
/// Records a fault unless the address is a multiple of `alignment`.
void require_aligned(const void* address, std::uintptr_t alignment, const char* what);
bool has_cudnn();
/// Who computes what kernels compute.
FiberMachine& machine();

}  // namespace cairn::tests::fake
