// Tests whole training steps of tiny models. The PTX interpreter runs the kernels that nvcc has compiled. A plain
// kernel (plain_product.cu) computes the matrix products.
#include <string>

#include "cairn/core/precision.h"
#include "cairn/core/schedule.h"
#include "cairn/cuda/device.h"
#include "cairn/cuda/support/executor.h"
#include "cairn/runtime/executor.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cuda/no_device.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/ptx_cuda/strict_arena.h"
#include "cairn/tests/support/device_program.h"
#include "cairn/tests/support/outputs.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests::steps_test {
namespace {

using core::Graph;
using core::Precision;
using core::Schedule;

constexpr std::int64_t kGuardBytes = 256;

/// Captures two training steps, one without recomputation and one with random recomputations, and replays both. The
/// results must be identical, and the measured memory must be the planned memory.
void check_steps(const std::string& model, Precision precision) {
  INFO(model << " " << core::to_string(precision));
  const StrictArena strict;
  cuda::Device device;
  Random random(31);
  const Graph graph = device.with_scratch(core::with_precision(tiny_model(model), precision), false);
  cuda::Executor baseline(device, device_program(device, graph));
  baseline.run();
  CHECK(baseline.measured_peak_bytes() == baseline.program().arena_bytes);
  const Outputs expected = outputs_of(baseline);
  baseline.enqueue();
  CHECK(outputs_of(baseline) == expected);

  const Schedule schedule = random_schedule(random, graph, 20);
  REQUIRE(schedule.length() > graph.node_count());
  cuda::Executor again(device, device_program(device, graph, schedule));
  again.run();
  CHECK(again.measured_peak_bytes() == again.program().arena_bytes);
  CHECK(outputs_of(again) == expected);
  cuda::Executor guarded(device, device_program(device, graph, schedule, kGuardBytes),
                         {.poison = true, .sentinels = true});
  guarded.run();
  CHECK(outputs_of(guarded) == expected);
  CHECK(fake::faults().empty());
}

/// Runs a training step on one stream, and on two streams with captured work in other orders than that of the program.
/// The results must be identical.
void check_streams(const std::string& model) {
  INFO(model);
  const StrictArena strict;
  cuda::Device device;
  const Graph graph = device.with_scratch(tiny_model(model), false);
  cuda::Executor serial(device, device_program(device, graph));
  serial.run();
  const Outputs expected = outputs_of(serial);
  const fake::Order before = fake::order();
  for (const fake::Order order : {fake::Order::early, fake::Order::random}) {
    fake::set_order(order, 7);
    cuda::Executor overlapped(device, device_program(device, graph), {.streams = 2});
    overlapped.run();
    CHECK(outputs_of(overlapped) == expected);
  }
  fake::set_order(before);
  CHECK(fake::faults().empty());
}

}  // namespace

TEST_CASE("PTX: a step of a tiny unet on two streams has the bits of one stream", "[ptx]") {
  if (no_device()) return;
  check_streams("unet");
}

TEST_CASE("PTX: a step of a tiny gpt2 is the same with recomputation, and measured is planned", "[ptx]") {
  if (no_device()) return;
  for (const Precision precision : {Precision::fp32, Precision::bf16}) check_steps("gpt2", precision);
}

TEST_CASE("PTX: a step of a tiny unet is the same with recomputation, and measured is planned", "[ptx]") {
  if (no_device()) return;
  for (const Precision precision : {Precision::fp32, Precision::bf16}) check_steps("unet", precision);
}

TEST_CASE("PTX: a step of a tiny transformer is the same with recomputation, and measured is planned", "[ptx]") {
  if (no_device()) return;
  for (const Precision precision : {Precision::fp32, Precision::bf16}) check_steps("transformer", precision);
}

TEST_CASE("PTX: a step of a tiny resnet is the same with recomputation, and measured is planned", "[ptx]") {
  if (no_device()) return;
  for (const Precision precision : {Precision::fp32, Precision::bf16}) check_steps("resnet18", precision);
}

}  // namespace cairn::tests::steps_test
