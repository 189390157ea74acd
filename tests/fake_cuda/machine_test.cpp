// Tests how a Machine sets the limits of shared memory of its kernels, and how it divides long fills of memory.
#include "cairn/tests/fake_cuda/include/cairn/cuda/internal/machine.cuh"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"

namespace cairn::tests::machine_test {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kFree = 44 * kKiB;  // 48 KiB, minus 4 KiB for variables that kernels declare in shared memory

/// A functor that does nothing. Each value of Id makes a separate kernel.
template <int Threads, int Id>
struct Idle {
  static constexpr int kThreads = Threads;
  template <class Team>
  CAIRN_HD void operator()(const Team&, std::int64_t) const {}
};

/// Returns the limit of shared memory, in bytes, that was set for the kernel of F. Returns 0 if no limit was set,
/// because F never needed more than every kernel may use.
template <class F>
std::int64_t allowed() {
  const auto all = fake::allowed_shared();
  const auto found = all.find(&cuda::kKernel<F>);
  return found == all.end() ? 0 : found->second;
}

std::int64_t requests() { return fake::calls()["cudaFuncSetAttribute"]; }

}  // namespace

TEST_CASE("a kernel is allowed the device's shared memory once, before it first needs more than every kernel has") {
  using Block = Idle<256, 0>;
  using Warp = Idle<32, 0>;
  using Counted = Idle<256, 1>;
  fake::reset();
  {
    cuda::Machine machine;
    machine.launch(Block(), 1, kFree);
    CHECK(requests() == 0);
    for (const std::int64_t bytes : {kFree + 1, 96 * kKiB, 50 * kKiB, 16 * kKiB}) {
      // A smaller launch must not lower the limit, because an earlier launch may not have run yet.
      machine.launch(Block(), 1, bytes);
      CHECK(allowed<Block>() == machine.shared_limit());
      CHECK(requests() == 1);
    }
    CHECK(allowed<Warp>() == 0);  // the limit is set for each kernel separately
    machine.launch(Warp(), 1, kFree / core::kWarpsOfBlock);
    CHECK(requests() == 1);
    machine.launch(Warp(), 1, kFree / core::kWarpsOfBlock + 1);  // the warps of a block together need more than kFree
    CHECK(allowed<Warp>() == machine.shared_limit());
    CHECK(requests() == 2);
    machine.resident_teams<Counted>(64 * kKiB);  // asks how many teams with this much memory can run at once
    CHECK(allowed<Counted>() == machine.shared_limit());

    cuda::Machine another;
    another.launch(Block(), 1, 64 * kKiB);
    CHECK(requests() == 3);
    CHECK_THROWS_AS(machine.launch(Block(), 1, machine.shared_limit() + 1), core::DeviceError);
    cuda::check(cudaStreamSynchronize(machine.stream()), "the launches");
    cuda::check(cudaStreamSynchronize(another.stream()), "the launches");
  }
  CHECK(fake::alive() == "");
  CHECK(fake::faults() == "");
}

TEST_CASE("where a kernel is not allowed the shared memory, its launch fails and the next one asks again") {
  using Kernel = Idle<256, 2>;
  fake::reset();
  {
    cuda::Machine machine;
    fake::fail_call("cudaFuncSetAttribute", 1);
    CHECK_THROWS_AS(machine.launch(Kernel(), 1, 64 * kKiB), core::DeviceError);
    machine.launch(Kernel(), 1, 64 * kKiB);
    CHECK(allowed<Kernel>() == machine.shared_limit());
    cuda::check(cudaStreamSynchronize(machine.stream()), "the launch");
  }
  CHECK(fake::faults() == "");
}

TEST_CASE("a fill of several pieces sets exactly its range") {
  constexpr std::int64_t kMost = 96, kBefore = 32, kAfter = 200;
  constexpr int kByte = 0xA7;
  fake::reset();
  {
    const cuda::Stream stream = cuda::make_stream();
    const cuda::Machine machine(stream.get(), kMost);
    for (const std::int64_t bytes :
         {std::int64_t{0}, std::int64_t{1}, kMost - 1, kMost, kMost + 1, 4 * kMost, 10 * kMost + 17}) {
      INFO(bytes << " bytes");
      const auto memory = machine.array<std::byte>(kBefore + bytes + kAfter);
      const std::vector<std::byte> old(static_cast<std::size_t>(memory.size()), std::byte{1});
      machine.upload(old.data(), memory.size(), memory.data());
      fake::take_fills();
      machine.fill(memory.data() + kBefore, kByte, bytes);
      std::vector<std::byte> found(old.size());
      machine.download(memory.data(), memory.size(), found.data());
      std::vector<std::byte> expected = old;
      std::fill_n(expected.begin() + kBefore, bytes, std::byte{kByte});
      CHECK(found == expected);
      std::vector<std::int64_t> pieces(static_cast<std::size_t>(bytes / kMost), kMost);
      if (bytes % kMost > 0) pieces.push_back(bytes % kMost);
      CHECK(fake::take_fills() == pieces);
    }
  }
  CHECK(fake::alive() == "");
  CHECK(fake::faults() == "");
}

TEST_CASE("no fill sets more than 2 GiB, in a capture either") {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  fake::reset();
  {
    const cuda::Machine machine;
    // The fills are only captured and never run, so the test needs no memory for them.
    REQUIRE(cudaStreamBeginCapture(machine.stream(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    machine.fill(nullptr, 0, 5 * kGiB);
    cudaGraph_t captured = nullptr;
    REQUIRE(cudaStreamEndCapture(machine.stream(), &captured) == cudaSuccess);
    const cuda::CapturedGraph graph(captured);
    CHECK(fake::take_fills() == std::vector<std::int64_t>{2 * kGiB, 2 * kGiB, kGiB});
  }
  CHECK(fake::alive() == "");
  CHECK(fake::faults() == "");
}

}  // namespace cairn::tests::machine_test
