#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/cuda/support/executor.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"
#include "cairn/tests/runtime/graphs.h"
#include "cairn/tests/support/device_program.h"
#include "cairn/tests/support/errors.h"

/// These helpers are shared by the tests of cuda::Executor on the fake CUDA runtime.
namespace cairn::tests {

inline constexpr std::int64_t kGuard = 64;
inline const std::vector<cuda::Launch> kLaunches = {cuda::Launch::graph, cuda::Launch::stream};

/// Resets the fake device. The destructor checks that no object is left on the device, and that the fake runtime has
/// recorded no misuse.
struct Gpu {
  explicit Gpu(std::int64_t bytes = fake::kDeviceBytes) { fake::reset(bytes); }
  ~Gpu() {
    CHECK(fake::alive() == "");
    CHECK(fake::faults() == "");
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
};

/// Sets the order in which the fake runtime runs pending work. The destructor restores the previous order.
class InOrder {
 public:
  explicit InOrder(fake::Order order, std::uint64_t seed = 0) : before_(fake::order()) { fake::set_order(order, seed); }
  ~InOrder() { fake::set_order(before_); }
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;

 private:
  fake::Order before_;
};

/// Calls `body` for each order in which the fake runtime can run pending work: once each for the orders `late` and
/// `early`, and eight times for the order `random`, with different seeds.
inline void in_every_order(const std::function<void()>& body) {
  for (const fake::Order order : {fake::Order::late, fake::Order::early, fake::Order::random}) {
    for (std::uint64_t seed = 0; seed < (order == fake::Order::random ? 8 : 1); ++seed) {
      INFO("order " << static_cast<int>(order) << ", seed " << seed);
      const InOrder in_order(order, seed);
      const Gpu gpu;
      body();
    }
  }
}

/// Runs `use` `count` times. In the k-th run, the k-th call of the CUDA function named `function` fails. Checks each
/// time that `use` throws a DeviceError with a one-line message, and leaves no object and no pending error on the
/// device. Then calls see(message).
inline void check_failures(
    const std::string& function, std::int64_t count, const std::function<void()>& use,
    const std::function<void(const std::string&)>& see = [](const std::string&) {}) {
  for (std::int64_t nth = 1; nth <= count; ++nth) {
    INFO(function << " fails at call " << nth << " of " << count);
    const Gpu gpu;
    fake::fail_call(function, nth);
    const std::string error = error_of<core::DeviceError>(use);
    CHECK_FALSE(error.empty());
    CHECK(error.find('\n') == std::string::npos);
    CHECK(fake::last_error() == cudaSuccess);
    see(error);
  }
}

inline Results run_on_device(cuda::Device& device, runtime::Program program,
                             const cuda::ExecutorOptions& options = {}) {
  cuda::Executor executor(device, std::move(program), options);
  executor.run();
  return results_of(executor);
}

/// A perceptron and a device. The schedule for the perceptron recomputes a node.
struct Fixture {
  explicit Fixture(int ordinal = 0) : device({.ordinal = ordinal}) {}

  cuda::Device device;
  Perceptron p = perceptron();
  core::Schedule schedule = with_recomputation(p);
  core::Graph graph = device.with_scratch(p.graph, false);

  runtime::Program program(std::int64_t guard_bytes = 0) {
    return device_program(device, graph, schedule, guard_bytes);
  }
};

}  // namespace cairn::tests
