#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "cairn/cuda/device.h"
#include "cairn/cuda/internal/runtime.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"
#include "cairn/tests/fake_cuda/runtime/fake_streams.h"

namespace cairn::tests::fake {
namespace {

struct Failure {
  std::int64_t countdown = 0;
  cudaError_t error = cudaSuccess;
};

struct Action {
  std::int64_t countdown = 0;
  std::function<void()> run;
};

struct Runtime {
  std::int64_t device_bytes = kDeviceBytes;
  bool available = true, cudnn = false;
  int device_count = 1, current = 0, driver_version = CUDART_VERSION;
  struct Allocation {
    std::int64_t bytes;
    int device;
  };
  std::map<const std::byte*, Allocation> allocations;  ///< allocations by address
  std::set<int> used_devices;
  std::map<const std::byte*, std::int64_t> pinned;  ///< bytes of page-locked host memory by address
  Streams streams{[this](const Work& work) { execute(work); }, [this] { return sticky != cudaSuccess; }};
  std::set<cudaEvent_t> events;
  std::set<cudaGraph_t> graphs;
  std::set<cudaGraphExec_t> execs;
  std::map<std::string, std::int64_t> calls;
  std::vector<std::int64_t> fills;  ///< bytes of each call of cudaMemsetAsync since the last call of take_fills()
  std::map<std::string, Failure> failing_calls;
  Failure failing_kernel;
  std::int64_t dropped_wait = 0;  ///< number of calls of cudaStreamWaitEvent until the call that has no effect, or 0
  Action before_kernel;
  std::string faults;
  cudaError_t last = cudaSuccess, sticky = cudaSuccess;
  std::int64_t clock = 0;

  void fault(const std::string& text) { faults += text + "\n"; }

  cudaError_t remember(cudaError_t error) {
    if (error != cudaSuccess) last = error;
    return error;
  }

  /// Counts a call of `function`. Returns the error with which the call must fail at once, or cudaSuccess.
  cudaError_t enter(const std::string& function, bool in_capture = true) {
    ++calls[function];
    if (!in_capture && streams.capturing()) {
      fault(function + " during a capture");
      return remember(cudaErrorStreamCaptureUnsupported);
    }
    const auto failing = failing_calls.find(function);
    if (failing != failing_calls.end() && --failing->second.countdown == 0) return remember(failing->second.error);
    return remember(sticky);
  }

  void require_current(int device, const char* what) {
    if (device != current)
      fault(std::string(what) + " of device " + std::to_string(device) + " while " + std::to_string(current) +
            " is current");
  }

  bool is_alive(cudaStream_t stream) const { return streams.alive.count(stream) != 0; }

  cudaError_t enqueue(cudaStream_t stream, Work work) {
    if (const cudaError_t status = require_alive(stream)) return status;
    streams.push(stream, std::move(work));
    return cudaSuccess;
  }
  cudaError_t require_alive(cudaStream_t stream) {
    if (!is_alive(stream)) {
      fault(stream == nullptr ? "work on the default stream" : "work on a stream that is no more");
      return remember(cudaErrorInvalidResourceHandle);
    }
    require_current(stream->device, "work on a stream");
    return cudaSuccess;
  }

  void execute(const Work& work) {
    if (work.kernel && --before_kernel.countdown == 0) before_kernel.run();
    if (work.kernel && --failing_kernel.countdown == 0) sticky = failing_kernel.error;
    if (sticky != cudaSuccess) return;
    if (work.event) {
      work.event->time = clock;
      ++work.event->done;
    } else {
      ++clock;
      work.run();
    }
  }

  void require_idle(const char* what) {
    for (const cudaStream_t stream : streams.alive) {
      if (!stream->pending.empty()) fault(std::string(what) + " while work is pending");
    }
  }

  /// Returns whether the range of `bytes` from `address` begins in an allocation of device memory. Records a fault if
  /// the range does not end in the same allocation.
  bool on_device(const void* address, std::size_t bytes, const char* what) {
    return inside(
        allocations, [](const Allocation& allocation) { return allocation.bytes; }, address, bytes, what);
  }
  /// Works like on_device(), but for page-locked host memory.
  bool is_pinned(const void* address, std::size_t bytes, const char* what) {
    return inside(
        pinned, [](std::int64_t size) { return size; }, address, bytes, what);
  }
  template <class Blocks, class BytesOf>
  bool inside(const Blocks& blocks, const BytesOf& bytes_of, const void* address, std::size_t bytes, const char* what) {
    const auto* begin = static_cast<const std::byte*>(address);
    auto after = blocks.upper_bound(begin);
    if (after == blocks.begin()) return false;
    const auto& [base, block] = *--after;
    const std::byte* const end = base + bytes_of(block);
    if (begin >= end) return false;
    if (begin + bytes > end) fault(std::string(what) + " runs over the end of an allocation");
    return true;
  }
  void require_on_device(const void* address, std::size_t bytes, const char* what) {
    if (!on_device(address, bytes, what)) fault(std::string(what) + " is not in device memory");
  }
};

std::unique_ptr<Runtime>& instance() {
  static std::unique_ptr<Runtime> runtime = std::make_unique<Runtime>();
  return runtime;
}
Runtime& runtime() { return *instance(); }

// reset() does not change these variables. Constructors of static objects may set the watch before main().
MemoryWatch* watch = nullptr;
std::vector<int> worthless_fills;
std::map<std::pair<const void*, int>, std::int64_t>& shared_of_kernels() {
  static std::map<std::pair<const void*, int>, std::int64_t> instance;
  return instance;
}

template <class Handle>
cudaError_t create(std::set<Handle>& alive, Handle* out, Handle created) {
  alive.insert(created);
  *out = created;
  return cudaSuccess;
}

/// Removes the object from the list of objects that are alive, even if the call must return an error.
template <class Handle>
cudaError_t destroy(const char* function, std::set<Handle>& alive, Handle handle) {
  const cudaError_t status = runtime().enter(function);
  if (alive.erase(handle) == 0) {
    runtime().fault(std::string(function) + " of what is not alive");
    return runtime().remember(cudaErrorInvalidResourceHandle);
  }
  if constexpr (!std::is_same_v<Handle, cudaGraph_t>) runtime().require_current(handle->device, function);
  delete handle;
  return status;
}

cudaError_t record(cudaEvent_t event, cudaStream_t stream, bool external) {
  EventState& state = *event->state;
  runtime().require_current(event->device, "a record");
  if (stream == cudaStreamLegacy)
    // The default stream never has work, so its events are complete at once.
    return cudaSuccess;
  const bool captured = runtime().is_alive(stream) && stream->capture != nullptr;
  if (captured && !external && !state.timed) {
    state.capture = stream->capture;
    state.after = stream->last;
    return cudaSuccess;
  }
  // Within a capture, only an external record can record a time, because an ordinary record only creates a dependency.
  // So the ordinary record of a timed event in a capture is a fault. An external record outside of a capture is a
  // fault, too.
  if (captured != external)
    runtime().fault(external ? "an external record outside a capture" : "an ordinary record in one");
  return runtime().enqueue(stream, {.event = event->state});
}

}  // namespace

void reset(std::int64_t device_bytes) {
  instance() = std::make_unique<Runtime>();
  runtime().device_bytes = device_bytes;
}
void set_device_bytes(std::int64_t bytes) { runtime().device_bytes = bytes; }
void set_available(bool available) { runtime().available = available; }
void set_driver_version(int version) { runtime().driver_version = version; }
void set_device_count(int count) { runtime().device_count = count; }
void set_cudnn(bool available) { runtime().cudnn = available; }
bool has_cudnn() { return runtime().cudnn; }

std::set<int> used_devices() { return runtime().used_devices; }

std::string alive() {
  std::string text;
  const auto add = [&](std::size_t count, const char* what) {
    if (count != 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  add(runtime().allocations.size(), "allocations");
  add(runtime().pinned.size(), "pinned allocations");
  add(runtime().streams.alive.size(), "streams");
  add(runtime().events.size(), "events");
  add(runtime().graphs.size(), "graphs");
  add(runtime().execs.size(), "instantiated graphs");
  return text;
}

std::int64_t allocated_bytes() {
  std::int64_t bytes = 0;
  for (const auto& [address, allocation] : runtime().allocations) bytes += allocation.bytes;
  return bytes;
}

std::string faults() { return runtime().faults; }
std::map<std::string, std::int64_t> calls() { return runtime().calls; }
std::vector<std::int64_t> take_fills() { return std::exchange(runtime().fills, {}); }
cudaError_t last_error() { return runtime().last; }

void fail_call(const std::string& function, std::int64_t nth, cudaError_t error) {
  runtime().failing_calls[function] = {nth, error};
}
void fail_kernel(std::int64_t nth, cudaError_t error) { runtime().failing_kernel = {nth, error}; }

void drop_wait(std::int64_t nth) { runtime().dropped_wait = nth; }

void before_kernel(std::int64_t nth, std::function<void()> action) {
  runtime().before_kernel = {nth, std::move(action)};
}

cudaError_t call(const std::string& function) { return runtime().enter(function); }

cudaError_t enqueue_kernel(cudaStream_t stream, std::function<void()> kernel) {
  const cudaError_t status = runtime().enter("kernel");
  return status != cudaSuccess ? status : runtime().enqueue(stream, {.run = std::move(kernel), .kernel = true});
}

void set_watch(MemoryWatch* one) { watch = one; }
void fail_device(const std::string& what) {
  runtime().fault(what);
  runtime().sticky = cudaErrorIllegalAddress;
}
void note_written(void* memory, std::size_t bytes) {
  if (watch != nullptr) watch->written(memory, bytes);
}
void set_worthless_fills(std::vector<int> values) { worthless_fills = std::move(values); }

void enqueue(cudaStream_t stream, std::function<void()> kernel, const char* what) {
  cuda::check(enqueue_kernel(stream, std::move(kernel)), what);
}

std::map<const void*, std::int64_t> allowed_shared() {
  std::map<const void*, std::int64_t> allowed;
  for (const auto& [kernel_and_device, bytes] : shared_of_kernels())
    if (kernel_and_device.second == runtime().current) allowed.emplace(kernel_and_device.first, bytes);
  return allowed;
}

int& shared_of_block() {
  static int bytes = 100 * 1024;  // the limit of tests::FiberMachine, plus the 4 KiB that cuda/ leaves free
  return bytes;
}

void require_shared(const void* kernel, std::int64_t of_block) {
  constexpr std::int64_t kOfEveryKernel = 48 * 1024;
  const auto allowed = shared_of_kernels().find({kernel, runtime().current});
  if (of_block > (allowed == shared_of_kernels().end() ? kOfEveryKernel : allowed->second))
    runtime().fault("a launch with " + std::to_string(of_block) +
                    " bytes of shared memory, more than its kernel may have");
}

void require_aligned(const void* address, std::uintptr_t alignment, const char* what) {
  if (reinterpret_cast<std::uintptr_t>(address) % alignment == 0) return;
  runtime().fault(std::string(what) + " is not at a multiple of " + std::to_string(alignment));
}

}  // namespace cairn::tests::fake

using namespace cairn::tests::fake;

namespace {

constexpr int kGarbage = 0xCB;  // byte that fills memory which was allocated, but not yet written

}  // namespace

// The names of functions and of their parameters are those of cuda_runtime_api.h.

cudaError_t cudaMalloc(void** devPtr, std::size_t size) {
  constexpr std::size_t kAlignment = 256;
  if (const cudaError_t status = runtime().enter("cudaMalloc", false)) return status;
  if (static_cast<std::int64_t>(size) > runtime().device_bytes - allocated_bytes()) {
    return runtime().remember(cudaErrorMemoryAllocation);
  }
  auto* memory =
      static_cast<std::byte*>(std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment));
  std::memset(memory, kGarbage, size);
  runtime().allocations[memory] = {static_cast<std::int64_t>(size), runtime().current};
  runtime().used_devices.insert(runtime().current);
  if (watch != nullptr) watch->allocated(memory, size);
  *devPtr = memory;
  return cudaSuccess;
}

cudaError_t cudaFree(void* devPtr) {
  const cudaError_t status = runtime().enter("cudaFree", false);
  if (devPtr == nullptr) return status;
  runtime().require_idle("cudaFree");
  const auto freed = runtime().allocations.extract(static_cast<std::byte*>(devPtr));
  if (freed.empty()) {
    runtime().fault("cudaFree of what is no allocation");
    return runtime().remember(cudaErrorInvalidValue);
  }
  runtime().require_current(freed.mapped().device, "cudaFree of memory");
  if (watch != nullptr) watch->freed(devPtr);
  std::free(devPtr);
  return status;
}

cudaError_t cudaMallocHost(void** ptr, std::size_t size) {
  if (const cudaError_t status = runtime().enter("cudaMallocHost", false)) return status;
  auto* memory = static_cast<std::byte*>(std::malloc(size));
  std::memset(memory, kGarbage, size);
  runtime().pinned[memory] = static_cast<std::int64_t>(size);
  *ptr = memory;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* ptr) {
  const cudaError_t status = runtime().enter("cudaFreeHost", false);
  if (ptr == nullptr) return status;
  runtime().require_idle("cudaFreeHost");
  if (runtime().pinned.erase(static_cast<std::byte*>(ptr)) == 0) {
    runtime().fault("cudaFreeHost of what is no allocation");
    return runtime().remember(cudaErrorInvalidValue);
  }
  std::free(ptr);
  return status;
}

cudaError_t cudaGetDevice(int* device) {
  *device = runtime().current;
  return runtime().enter("cudaGetDevice");
}

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t status = runtime().enter("cudaSetDevice")) return status;
  if (device < 0 || device >= runtime().device_count) return runtime().remember(cudaErrorInvalidDevice);
  runtime().current = device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const std::map<cudaDeviceAttr, int> attributes{
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, shared_of_block()},
      {cudaDevAttrMultiProcessorCount, 1},
      {cudaDevAttrComputeCapabilityMajor, 9},
      {cudaDevAttrMaxGridDimX, std::numeric_limits<int>::max()},
  };
  const auto found = attributes.find(attribute);
  *value = found == attributes.end() ? 0 : found->second;
  return runtime().enter("cudaDeviceGetAttribute");
}

cudaError_t cudaFuncSetAttribute(const void* func, cudaFuncAttribute attr, int value) {
  if (const cudaError_t status = runtime().enter("cudaFuncSetAttribute")) return status;
  if (attr != cudaFuncAttributeMaxDynamicSharedMemorySize || value > shared_of_block()) {
    return runtime().remember(cudaErrorInvalidValue);
  }
  if (!shared_of_kernels().emplace(std::pair{func, runtime().current}, value).second)
    runtime().fault("a kernel's shared memory is set twice");
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* ptr) {
  *attributes = {};
  if (const cudaError_t status = runtime().enter("cudaPointerGetAttributes")) return status;
  if (!runtime().on_device(ptr, 1, "a pointer")) return cudaSuccess;  // leaves the type as cudaMemoryTypeUnregistered
  attributes->type = cudaMemoryTypeDevice;
  attributes->device = std::prev(runtime().allocations.upper_bound(static_cast<const std::byte*>(ptr)))->second.device;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (const cudaError_t status = runtime().enter("cudaMemGetInfo")) return status;
  *total = static_cast<std::size_t>(runtime().device_bytes);
  *free = static_cast<std::size_t>(std::max<std::int64_t>(0, runtime().device_bytes - allocated_bytes()));
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, std::size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  if (const cudaError_t status = runtime().enter("cudaMemcpyAsync")) return status;
  return runtime().enqueue(stream, {.run = [=] {
                             const bool from_host = kind == cudaMemcpyHostToDevice;
                             const bool to_host = kind == cudaMemcpyDeviceToHost;
                             if (!from_host) runtime().require_on_device(src, count, "a copy's device side");
                             if (!to_host) runtime().require_on_device(dst, count, "a copy's device side");
                             if ((from_host && runtime().on_device(src, count, "a copy's host side")) ||
                                 (to_host && runtime().on_device(dst, count, "a copy's host side"))) {
                               runtime().fault("a copy's host side is in device memory");
                             }
                             if (from_host) runtime().is_pinned(src, count, "a copy's host side");
                             if (to_host) runtime().is_pinned(dst, count, "a copy's host side");
                             const std::string wrong = from_host || watch == nullptr ? "" : watch->read(src, count);
                             if (!wrong.empty()) fail_device((to_host ? "a copy to the host " : "a copy ") + wrong);
                             std::memcpy(dst, src, count);
                             if (!to_host) note_written(dst, count);
                           }});
}

cudaError_t cudaMemsetAsync(void* devPtr, int value, std::size_t count, cudaStream_t stream) {
  if (const cudaError_t status = runtime().enter("cudaMemsetAsync")) return status;
  runtime().fills.push_back(static_cast<std::int64_t>(count));
  return runtime().enqueue(stream, {.run = [=] {
                             const bool on_host = runtime().is_pinned(devPtr, count, "a fill");
                             if (!on_host) runtime().require_on_device(devPtr, count, "a fill");
                             std::memset(devPtr, value, count);
                             if (on_host) return;
                             if (std::ranges::find(worthless_fills, value) == worthless_fills.end()) {
                               note_written(devPtr, count);
                             } else if (watch != nullptr) {
                               watch->forgotten(devPtr, count);
                             }
                           }});
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* pStream, unsigned) {
  if (const cudaError_t status = runtime().enter("cudaStreamCreateWithFlags")) return status;
  runtime().used_devices.insert(runtime().current);
  return create(runtime().streams.alive, pStream, new CUstream_st{.device = runtime().current});
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  runtime().require_idle("cudaStreamDestroy");
  return destroy("cudaStreamDestroy", runtime().streams.alive, stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const cudaError_t status = runtime().enter("cudaStreamSynchronize");
  if (!runtime().is_alive(stream)) {
    runtime().fault("a wait for what is no stream");
    return runtime().remember(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture) {
    runtime().fault("cudaStreamSynchronize of a stream that is captured");
    return runtime().remember(cudaErrorStreamCaptureUnsupported);
  }
  // Runs the pending work even if the call must fail, because after a real failure no work is pending either.
  runtime().streams.finish(stream);
  return status != cudaSuccess ? status : runtime().remember(runtime().sticky);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t status = runtime().enter("cudaEventCreateWithFlags")) return status;
  auto state = std::make_shared<EventState>();
  state->timed = (flags & cudaEventDisableTiming) == 0;
  return create(runtime().events, event, new CUevent_st{std::move(state), runtime().current});
}

cudaError_t cudaEventDestroy(cudaEvent_t event) { return destroy("cudaEventDestroy", runtime().events, event); }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t status = runtime().enter("cudaEventRecord")) return status;
  return record(event, stream, false);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (const cudaError_t status = runtime().enter("cudaEventRecordWithFlags")) return status;
  return record(event, stream, flags == cudaEventRecordExternal);
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  if (const cudaError_t status = runtime().enter("cudaEventElapsedTime", false)) return status;
  for (const cudaEvent_t event : {start, end}) {
    if (!event->state->timed) return runtime().remember(cudaErrorInvalidResourceHandle);
    if (event->state->enqueued > event->state->done) return runtime().remember(cudaErrorNotReady);
    if (event->state->done == 0) return runtime().remember(cudaErrorInvalidResourceHandle);
  }
  *ms = static_cast<float>(end->state->time - start->state->time) / 1000.0F;
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t status = runtime().enter("cudaStreamWaitEvent")) return status;
  if (const cudaError_t status = runtime().require_alive(stream)) return status;
  if (runtime().dropped_wait > 0 && --runtime().dropped_wait == 0) return cudaSuccess;
  const std::string wrong = runtime().streams.wait(stream, event->state);
  if (wrong.empty()) return cudaSuccess;
  runtime().fault(wrong);
  return runtime().remember(cudaErrorStreamCaptureIsolation);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const cudaError_t status = runtime().enter("cudaEventSynchronize", false);
  runtime().streams.finish(*event->state, event->state->enqueued);
  return status != cudaSuccess ? status : runtime().remember(runtime().sticky);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t status = runtime().enter("cudaEventQuery", false)) return status;
  const EventState& state = *event->state;
  if (state.done >= state.enqueued) return cudaSuccess;
  // Lets one record happen, because otherwise a loop of queries would never end.
  runtime().streams.finish(state, state.done + 1);
  return cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize() {
  const cudaError_t status = runtime().enter("cudaDeviceSynchronize", false);
  for (const cudaStream_t stream : runtime().streams.alive) runtime().streams.finish(stream);
  return status != cudaSuccess ? status : runtime().remember(runtime().sticky);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (const cudaError_t status = runtime().enter("cudaStreamBeginCapture", false)) return status;
  if (!runtime().is_alive(stream)) return runtime().remember(cudaErrorStreamCaptureUnsupported);
  stream->capture = std::make_shared<Capture>(Capture{.origin = stream});
  stream->last.clear();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* pGraph) {
  const cudaError_t status = runtime().enter("cudaStreamEndCapture");
  *pGraph = nullptr;
  if (!stream->capture) return status != cudaSuccess ? status : runtime().remember(cudaErrorIllegalState);
  std::vector<Node> nodes;
  const std::string wrong = runtime().streams.end_capture(stream, nodes);
  if (status != cudaSuccess) return status;
  if (!wrong.empty()) {
    runtime().fault(wrong);
    return runtime().remember(cudaErrorStreamCaptureUnjoined);
  }
  return create(runtime().graphs, pGraph, new CUgraph_st{std::move(nodes)});
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return destroy("cudaGraphDestroy", runtime().graphs, graph); }

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* pGraphExec, cudaGraph_t graph, unsigned long long) {
  if (const cudaError_t status = runtime().enter("cudaGraphInstantiate", false)) return status;
  return create(runtime().execs, pGraphExec, new CUgraphExec_st{graph->nodes, runtime().current});
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  return destroy("cudaGraphExecDestroy", runtime().execs, graphExec);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t stream) {
  if (const cudaError_t status = runtime().enter("cudaGraphUpload", false)) return status;
  return runtime().enqueue(stream, {.run = [] {}});
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
  if (const cudaError_t status = runtime().enter("cudaGraphLaunch", false)) return status;
  if (runtime().execs.count(graphExec) == 0) {
    runtime().fault("the launch of what is no graph");
    return runtime().remember(cudaErrorInvalidValue);
  }
  if (const cudaError_t status = runtime().require_alive(stream)) return status;
  runtime().streams.launch(graphExec->nodes, stream);
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return std::exchange(runtime().last, runtime().sticky); }

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    default:
      return "an error of the fake runtime";
  }
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = runtime().driver_version;
  return runtime().enter("cudaDriverGetVersion");
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = runtime().available ? runtime().device_count : 0;
  if (const cudaError_t status = runtime().enter("cudaGetDeviceCount")) return status;
  return runtime().remember(runtime().available ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "fake device");
  properties->major = 9;
  properties->multiProcessorCount = 1;
  return runtime().enter("cudaGetDeviceProperties");
}
