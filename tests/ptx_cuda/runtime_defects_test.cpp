// Plants defects in small programs that use CUDA's runtime and in memory plans. Each defect must be caught: by the fake
// runtime, by the PTX interpreter, or by a wrong result in one of the orders in which work may run. Without the defect,
// nothing must be found.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/cuda/internal/libraries.h"
#include "cairn/cuda/internal/runtime.h"
#include "cairn/cuda/support/executor.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cuda/no_device.h"
#include "cairn/tests/ptx/kernel.h"
#include "cairn/tests/ptx_cuda/strict_arena.h"
#include "cairn/tests/runtime/graphs.h"
#include "cairn/tests/support/device_program.h"
#include "cairn/tests/support/errors.h"

namespace cairn::tests::runtime_defects_test {
namespace {

using fake::Order;
using ptx::Kernel;

constexpr std::int64_t kCount = 64;  // number of elements of a buffer, and of threads of a kernel
constexpr std::int64_t kBytes = kCount * static_cast<std::int64_t>(sizeof(std::uint64_t));

const std::string kOwnNumber = "mov.u32 %w0, %tid.x;\nmul.wide.u32 %x4, %w0, 8;\n";

/// Returns a kernel in which each thread i writes its number plus `base`: out[i] = i + base.
Kernel& numbers_kernel() {
  static Kernel kernel(2, kOwnNumber + R"(
ld.param.u64 %x0, [p0];
ld.param.u64 %x1, [p1];
add.s64 %x0, %x0, %x4;
cvt.u64.u32 %x5, %w0;
add.s64 %x5, %x5, %x1;
st.global.u64 [%x0], %x5;)");
  return kernel;
}
/// Returns a kernel in which each thread copies a number: out[i] = in[i].
Kernel& copy_kernel() {
  static Kernel kernel(2, kOwnNumber + R"(
ld.param.u64 %x0, [p0];
ld.param.u64 %x1, [p1];
add.s64 %x0, %x0, %x4;
add.s64 %x1, %x1, %x4;
ld.global.u64 %x5, [%x0];
st.global.u64 [%x1], %x5;)");
  return kernel;
}

/// Two streams, two events and two buffers for a small CUDA program. They are never released, because each run has a
/// fresh fake runtime, which forgets the objects of earlier runs.
class Room {
 public:
  Room() {
    for (cudaStream_t* stream : {&a, &b}) cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
    for (cudaEvent_t* event : {&first, &second}) cudaEventCreateWithFlags(event, cudaEventDisableTiming);
    for (std::uint64_t** buffer : {&x, &y})
      cudaMalloc(reinterpret_cast<void**>(buffer), static_cast<std::size_t>(kBytes));
  }

  static void number(std::uint64_t* out, std::uint64_t base, cudaStream_t stream) {
    launch(numbers_kernel(), ptx::address(out), base, stream);
  }
  static void copy(const std::uint64_t* in, std::uint64_t* out, cudaStream_t stream) {
    launch(copy_kernel(), ptx::address(in), ptx::address(out), stream);
  }
  /// Waits for stream `b` and then for stream `a`. Returns "a wrong result" if some out[i] is not i + base.
  std::string check(const std::uint64_t* out, std::uint64_t base) const {
    if (cudaStreamSynchronize(b) != cudaSuccess || cudaStreamSynchronize(a) != cudaSuccess) return {};
    for (std::uint64_t i = 0; i < kCount; ++i) {
      if (out[i] != i + base) return "a wrong result";
    }
    return {};
  }

  cudaStream_t a = nullptr, b = nullptr;
  cudaEvent_t first = nullptr, second = nullptr;
  std::uint64_t *x = nullptr, *y = nullptr;

 private:
  static void launch(Kernel& kernel, std::uint64_t p0, std::uint64_t p1, cudaStream_t stream) {
    ptx::launch(kernel.program(), {1}, {static_cast<std::uint32_t>(kCount)}, {p0, p1}, stream);
  }
};

/// A small CUDA program. It contains the defect if `planted` is set. It returns what it notices itself, or an empty
/// text.
using Body = std::function<std::string(Room&, bool planted)>;

std::string found_by(const Body& body, bool planted, Order order, std::uint64_t seed) {
  const Order before = fake::order();
  fake::reset();
  fake::set_order(order, seed);
  Room room;
  std::string found = body(room, planted);
  found += fake::faults();
  fake::reset();
  fake::set_order(before);
  return found;
}

/// Checks that the planted defect is caught in at least one order of work, with a message that contains `words`. Checks
/// also that nothing is found without the defect.
void check_defect(const std::string& name, const std::string& words, const Body& body) {
  if (no_device()) return;
  constexpr std::uint64_t kSeeds = 8;
  INFO(name);
  bool caught = false;
  for (const Order order : {Order::late, Order::early, Order::random}) {
    for (std::uint64_t seed = 0; seed < (order == Order::random ? kSeeds : 1); ++seed) {
      CHECK(found_by(body, false, order, seed) == "");
      const std::string found = found_by(body, true, order, seed);
      caught = caught || contains(found, words);
      if (!found.empty()) CHECK(contains(found, words));
    }
  }
  CHECK(caught);
}

}  // namespace

TEST_CASE("PTX: defects between streams are caught", "[ptx]") {
  const std::string unwritten = "which was never written";
  check_defect("a missing wait for an event", unwritten, [](Room& r, bool planted) {
    r.number(r.x, 1, r.a);
    cudaEventRecord(r.first, r.a);
    if (!planted) cudaStreamWaitEvent(r.b, r.first, 0);
    r.copy(r.x, r.y, r.b);
    return r.check(r.y, 1);
  });
  check_defect("an event that is recorded before the kernel", unwritten, [](Room& r, bool planted) {
    if (planted) cudaEventRecord(r.first, r.a);
    r.number(r.x, 1, r.a);
    if (!planted) cudaEventRecord(r.first, r.a);
    cudaStreamWaitEvent(r.b, r.first, 0);
    r.copy(r.x, r.y, r.b);
    return r.check(r.y, 1);
  });
  check_defect("a buffer that is written again before another stream has read it", "a wrong result",
               [](Room& r, bool planted) {
                 r.number(r.x, 1, r.a);
                 cudaStreamSynchronize(r.a);
                 r.copy(r.x, r.y, r.a);
                 cudaEventRecord(r.first, r.a);
                 if (!planted) cudaStreamWaitEvent(r.b, r.first, 0);
                 r.number(r.x, 100, r.b);
                 return r.check(r.y, 1);
               });
  check_defect("a download in another stream, before the kernel has ended", unwritten, [](Room& r, bool planted) {
    std::vector<std::uint64_t> host(kCount);
    r.number(r.x, 1, r.a);
    cudaMemcpyAsync(host.data(), r.x, kBytes, cudaMemcpyDeviceToHost, planted ? r.b : r.a);
    return r.check(host.data(), 1);
  });
  check_defect("a stream that is destroyed while it has work", "cudaStreamDestroy while work is pending",
               [](Room& r, bool planted) {
                 r.number(r.x, 1, r.a);
                 if (!planted) cudaStreamSynchronize(r.a);
                 cudaStreamDestroy(r.a);
                 return std::string();
               });
  check_defect("work on the default stream", "work on the default stream", [](Room& r, bool planted) {
    r.number(r.x, 1, planted ? nullptr : r.a);
    return std::string();
  });
}

TEST_CASE("PTX: defects between host and device are caught", "[ptx]") {
  const auto pinned = [] {
    void* memory = nullptr;
    cudaMallocHost(&memory, kBytes);
    return static_cast<std::uint64_t*>(memory);
  };
  check_defect("pinned memory that the host reads before the download has ended", "a wrong result",
               [&](Room& r, bool planted) {
                 std::uint64_t* const host = pinned();
                 r.number(r.x, 1, r.a);
                 cudaMemcpyAsync(host, r.x, kBytes, cudaMemcpyDeviceToHost, r.a);
                 if (!planted) cudaStreamSynchronize(r.a);
                 return std::string(host[kCount - 1] == kCount ? "" : "a wrong result");
               });
  check_defect("an upload's source that the host overwrites before it is sent", "a wrong result",
               [&](Room& r, bool planted) {
                 std::uint64_t* const host = pinned();
                 for (std::uint64_t i = 0; i < kCount; ++i) host[i] = i + 1;
                 cudaMemcpyAsync(r.x, host, kBytes, cudaMemcpyHostToDevice, r.a);
                 if (!planted) cudaStreamSynchronize(r.a);
                 std::fill(host, host + kCount, 0);
                 r.copy(r.x, r.y, r.a);
                 return r.check(r.y, 1);
               });
  check_defect("pinned memory that is freed while a copy needs it", "cudaFreeHost while work is pending",
               [&](Room& r, bool planted) {
                 std::uint64_t* const host = pinned();
                 r.number(r.x, 1, r.a);
                 cudaMemcpyAsync(host, r.x, kBytes, cudaMemcpyDeviceToHost, r.a);
                 if (!planted) cudaEventRecord(r.first, r.a);
                 if (!planted) cudaEventSynchronize(r.first);
                 cudaFreeHost(host);
                 return std::string();
               });
  check_defect("memory that is freed while a kernel needs it", "cudaFree while work is pending",
               [](Room& r, bool planted) {
                 r.number(r.x, 1, r.a);
                 if (!planted) cudaStreamSynchronize(r.a);
                 cudaFree(r.x);
                 return std::string();
               });
  check_defect("a copy that runs over the end of an allocation", "runs over the end of an allocation",
               [&](Room& r, bool planted) {
                 std::vector<std::uint64_t> host(kCount + 1, 7);
                 cudaMemcpyAsync(r.x, host.data(), kBytes + (planted ? 8 : 0), cudaMemcpyHostToDevice, r.a);
                 return std::string(cudaStreamSynchronize(r.a) == cudaSuccess ? "" : "it failed");
               });
  check_defect(
      "more shared memory than the kernel was allowed", "more than its kernel may have", [](Room& r, bool planted) {
        constexpr std::size_t kAllowed = 48 * 1024;
        ptx::launch(numbers_kernel().program(), {1}, {1}, {ptx::address(r.x), 1}, r.a, kAllowed + (planted ? 16 : 0));
        return std::string(cudaStreamSynchronize(r.a) == cudaSuccess ? "" : "it failed");
      });
}

TEST_CASE("PTX: defects of captures are caught", "[ptx]") {
  const auto end = [](cudaStream_t stream) {
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(stream, &graph) != cudaSuccess) return cudaGraphExec_t();
    cudaGraphExec_t exec = nullptr;
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    return exec;
  };
  check_defect("a capture whose forked stream is not joined", "before its streams were joined",
               [&](Room& r, bool planted) {
                 cudaStreamBeginCapture(r.a, cudaStreamCaptureModeThreadLocal);
                 r.number(r.x, 1, r.a);
                 cudaEventRecord(r.first, r.a);
                 cudaStreamWaitEvent(r.b, r.first, 0);
                 r.copy(r.x, r.y, r.b);
                 cudaEventRecord(r.second, r.b);
                 if (!planted) cudaStreamWaitEvent(r.a, r.second, 0);
                 const cudaGraphExec_t exec = end(r.a);
                 if (exec == nullptr) return std::string();
                 cudaGraphLaunch(exec, r.a);
                 return r.check(r.y, 1);
               });
  check_defect("a captured stream that waits for too early an event", "which was never written",
               [&](Room& r, bool planted) {
                 cudaStreamBeginCapture(r.a, cudaStreamCaptureModeThreadLocal);
                 cudaEventRecord(r.first, r.a);
                 r.number(r.x, 1, r.a);
                 if (!planted) cudaEventRecord(r.first, r.a);
                 cudaStreamWaitEvent(r.b, r.first, 0);
                 r.copy(r.x, r.y, r.b);
                 cudaEventRecord(r.second, r.b);
                 cudaStreamWaitEvent(r.a, r.second, 0);
                 cudaGraphLaunch(end(r.a), r.a);
                 return r.check(r.y, 1);
               });
  check_defect("a captured stream that waits for an event outside of the capture", "outside of its capture",
               [&](Room& r, bool planted) {
                 r.number(r.x, 1, r.b);
                 cudaEventRecord(r.first, r.b);
                 if (!planted) cudaStreamWaitEvent(r.a, r.first, 0);
                 cudaStreamBeginCapture(r.a, cudaStreamCaptureModeThreadLocal);
                 if (planted) cudaStreamWaitEvent(r.a, r.first, 0);
                 r.number(r.y, 1, r.a);
                 const cudaGraphExec_t exec = end(r.a);
                 cudaGraphLaunch(exec, r.a);
                 return r.check(r.y, 1);
               });
  check_defect("a wait for a stream during its capture", "of a stream that is captured", [&](Room& r, bool planted) {
    cudaStreamBeginCapture(r.a, cudaStreamCaptureModeThreadLocal);
    r.number(r.x, 1, r.a);
    if (planted) cudaStreamSynchronize(r.a);
    cudaGraphLaunch(end(r.a), r.a);
    return r.check(r.x, 1);
  });
  check_defect("an allocation during a capture", "cudaMalloc during a capture", [&](Room& r, bool planted) {
    cudaStreamBeginCapture(r.a, cudaStreamCaptureModeThreadLocal);
    void* memory = nullptr;
    if (planted) cudaMalloc(&memory, 16);
    r.number(r.x, 1, r.a);
    cudaGraphLaunch(end(r.a), r.a);
    return r.check(r.x, 1);
  });
  check_defect("a graph that is replayed after its memory was freed", "accesses 8 bytes", [&](Room& r, bool planted) {
    cudaStreamBeginCapture(r.a, cudaStreamCaptureModeThreadLocal);
    r.number(r.x, 1, r.a);
    const cudaGraphExec_t exec = end(r.a);
    if (planted) cudaFree(r.x);
    cudaGraphLaunch(exec, r.a);
    return planted ? (cudaStreamSynchronize(r.a), std::string()) : r.check(r.x, 1);
  });
}

TEST_CASE("PTX: defects of products' operands are caught", "[ptx]") {
  constexpr std::int64_t kSide = 8;
  const auto multiply = [](Room& r, std::int64_t k) {
    const auto memory = [](std::int64_t bytes) {
      void* address = nullptr;
      cudaMalloc(&address, static_cast<std::size_t>(bytes));
      return static_cast<std::byte*>(address);
    };
    runtime::device::GemmShape shape;
    shape.m = shape.n = kSide;
    shape.k = k;
    cuda::Gemms gemms(0);
    gemms.run(shape, {.a = r.x, .b = r.y, .c = memory(kSide * kSide * 4)}, memory(gemms.workspace(shape)), r.a);
    return std::string(cudaStreamSynchronize(r.a) == cudaSuccess ? "" : "it failed: ");
  };
  check_defect("a product that reads a factor before it is written", "which was never written",
               [&](Room& r, bool planted) {
                 cudaMemsetAsync(r.x, 0, kBytes, r.a);
                 if (!planted) cudaMemsetAsync(r.y, 0, kBytes, r.a);
                 return multiply(r, kSide);
               });
  check_defect("a product that reads behind a factor", "behind an allocation of", [&](Room& r, bool planted) {
    cudaMemsetAsync(r.x, 0, kBytes, r.a);
    cudaMemsetAsync(r.y, 0, kBytes, r.a);
    return multiply(r, planted ? 3 * kSide : kSide);
  });
}

TEST_CASE("PTX: defects of plans are caught", "[ptx]") {
  const core::Graph graph =
      build_graph({make_node("a", 200), make_node("b", 300, {0}), make_node("sink", 100, {0, 1})});
  constexpr std::int64_t kGuardBytes = 64;
  const auto run = [&](const cuda::ExecutorOptions& options, const std::function<void(runtime::Program&)>& change) {
    const StrictArena strict;
    cuda::Device device;
    const std::int64_t guard = options.sentinels ? kGuardBytes : 0;
    runtime::Program program = device_program(device, graph, guard);
    change(program);
    return error_of<core::Error>([&] { cuda::Executor(device, program, options).run(); });
  };
  check_defect("a buffer that the plan frees before its last reader", "which was never written",
               [&](Room&, bool planted) {
                 return run({.poison = true}, [&](runtime::Program& program) {
                   if (planted) free_early(program, 1, 0);
                 });
               });
  check_defect("an op that reads another buffer than it should", "which was never written", [&](Room&, bool planted) {
    return run({}, [&](runtime::Program& program) {
      if (planted) program.inputs[program.instructions[1].input_begin].offset = output_of(program, 2).offset;
    });
  });
  check_defect("two live buffers at one address", "wrote beyond the end of the buffer", [&](Room&, bool planted) {
    return run({.sentinels = true}, [&](runtime::Program& program) {
      if (!planted) return;
      output_of(program, 1).offset = output_of(program, 0).offset;
      program.inputs[program.instructions[2].input_begin + 1].offset = output_of(program, 0).offset;
    });
  });
}

}  // namespace cairn::tests::runtime_defects_test
