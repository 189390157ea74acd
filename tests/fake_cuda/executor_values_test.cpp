// Tests how values get into and out of cuda::Executor while steps are enqueued. The fake CUDA runtime runs the enqueued
// work in every order that it supports.
#include <cmath>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/precision.h"
#include "cairn/core/support/bf16.h"
#include "cairn/cuda/internal/runtime.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/fake_cuda/executor_fixture.h"
#include "cairn/tests/runtime/updated_models.h"
#include "cairn/tests/support/errors.h"

namespace cairn::tests::executor_values_test {
namespace {

using core::Graph;
using core::InputError;
using core::Precision;
using cuda::Device;
using cuda::Executor;
using cuda::Launch;

using Floats = std::vector<float>;
using Integers = std::vector<std::int32_t>;

struct WaitAtEnd {
  cudaStream_t stream;
  ~WaitAtEnd() { cudaStreamSynchronize(stream); }
};

/// The values that one training step needs. The model is a tiny gpt2, and its optimizer is adamw.
struct Feed {
  Integers tokens, labels;
  Floats rate, step;
  std::uint64_t seed = 0;
};

std::vector<Feed> random_feeds(int count) {
  std::mt19937 random(3);
  const auto integers = [&] {
    Integers values(12);
    for (std::int32_t& value : values) value = static_cast<std::int32_t>(random() % 11);
    return values;
  };
  std::vector<Feed> feeds;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<float>(i + 1);
    feeds.push_back({integers(), integers(), {0.01F * at}, {at}, i == 2 ? 0 : random()});
  }
  return feeds;
}

/// Returns the elements of all weights and of the optimizer's state, by the name of the resident.
std::map<std::string, Floats> weights_of(Executor& executor) {
  std::map<std::string, Floats> weights;
  for (const Resident& resident : executor.program().graph.residents()) {
    if (resident.role != Resident::Role::weight && resident.role != Resident::Role::optimizer) continue;
    Floats& values = weights[resident.name];
    values.resize(static_cast<std::size_t>(core::element_count(resident.shape)));
    executor.get(resident.name, values);
  }
  return weights;
}

}  // namespace

TEST_CASE("values that are staged while steps run give the bits of values that are set between steps") {
  const std::vector<Feed> feeds = random_feeds(5);
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const Graph plain = gpt2_with_updates(precision);
    std::map<std::string, Floats> expected;
    {
      const Gpu gpu;
      Device device;
      const Graph graph = device.with_scratch(plain, false);
      Executor executor(device, device_program(device, graph));
      for (const Feed& feed : feeds) {
        executor.set("tokens", feed.tokens);
        executor.set("labels", feed.labels);
        executor.set("learning_rate", feed.rate);
        executor.set("step", feed.step);
        executor.set_dropout_seed(feed.seed);
        executor.run();
      }
      expected = weights_of(executor);
    }
    for (const Launch launch : kLaunches) {
      in_every_order([&] {
        Device device;
        const Graph graph = device.with_scratch(plain, false);
        Executor executor(device, device_program(device, graph), {.launch = launch});
        for (Feed feed : feeds) {
          executor.stage("tokens", feed.tokens);
          executor.set_dropout_seed(feed.seed);
          executor.stage("labels", feed.labels);
          executor.stage("learning_rate", feed.rate);
          executor.stage("step", feed.step);
          feed = {};  // the caller may reuse the memory of staged values at once
          executor.enqueue();
        }
        executor.wait();
        CHECK(weights_of(executor) == expected);
      });
    }
  }
}

TEST_CASE("staged values reach the next step, the last ones count, and reset drops them but not the dropout seed") {
  for (const Launch launch : kLaunches) {
    in_every_order([&] {
      Fixture f;
      Executor executor(f.device, f.program(), {.launch = launch});
      Floats x(35), old(35);
      executor.get("x", old);
      executor.stage("x", Floats(35, 9));
      executor.stage("x", Floats(35, 4));
      executor.get("x", x);
      CHECK(x == old);
      executor.enqueue();
      executor.get("x", x);
      CHECK(x == Floats(35, 4));
      executor.set("x", old);
      executor.run();
      executor.get("x", x);
      CHECK(x == old);
      executor.stage("x", Floats(35, 5));
      executor.reset();
      executor.run();
      executor.get("x", x);
      CHECK(x == old);
      executor.stage("x", Floats(35, 6));  // the executor is destroyed before any step takes these values
    });
  }
  const Gpu gpu;
  Device device;
  const Graph graph = device.with_scratch(gpt2_with_updates(Precision::fp32), false);
  Executor executor(device, device_program(device, graph));
  executor.set_dropout_seed(4);
  executor.run();
  const auto expected = weights_of(executor);
  executor.reset();
  executor.run();
  CHECK(weights_of(executor) == expected);
  executor.set_dropout_seed(0);
  executor.reset();
  executor.run();
  const auto without = weights_of(executor);
  CHECK_FALSE(without == expected);
  executor.set_dropout_seed(4);
  executor.reset();  // this reset comes before a step has taken the seed
  executor.run();
  CHECK(weights_of(executor) == expected);
}

TEST_CASE("weights after several steps are the same for every schedule and launch on a device") {
  Random random(5);
  for (const Graph& plain : updated_models()) {
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      INFO(plain.name() << ' ' << core::to_string(precision));
      const Gpu gpu;
      Device device;
      const Graph graph = device.with_scratch(core::with_precision(plain, precision), false);
      Executor baseline(device, device_program(device, graph));
      baseline.set_dropout_seed(3);
      const std::vector<Outputs> expected = outputs_of_steps(baseline, 2);
      for (const Launch launch : kLaunches) {
        const core::Schedule schedule = recomputing_schedule(random, graph);
        Executor executor(device, device_program(device, graph, schedule, kGuard),
                          {.poison = true, .sentinels = true, .launch = launch});
        executor.set_dropout_seed(3);
        CHECK(outputs_of_steps(executor, 2) == expected);
        executor.reset();
        executor.run(true);  // times every op, but counts as only one step
        CHECK(outputs_of(executor) == expected[0]);
        executor.enqueue();
        executor.wait();
        CHECK(outputs_of(executor) == expected[1]);
      }
    }
  }
}

TEST_CASE("steps that update weights agree with the host's") {
  for (const Graph& plain : updated_models()) {
    INFO(plain.name());
    const Gpu gpu;
    Device device;
    const auto host = runtime::host_executor(compiled(plain));
    const std::vector<Outputs> expected = outputs_of_steps(*host, 3);
    const Graph graph = device.with_scratch(plain, false);
    Executor executor(device, device_program(device, graph));
    const std::vector<Outputs> actual = outputs_of_steps(executor, 3);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      REQUIRE(actual[i].size() == expected[i].size());
      for (std::size_t k = 0; k < expected[i].size(); ++k) {
        const Floats device_values = as_floats(actual[i][k].second), host_values = as_floats(expected[i][k].second);
        check_close({device_values.begin(), device_values.end()}, {host_values.begin(), host_values.end()}, 1e-4);
      }
    }
  }
}

TEST_CASE("values come from and go to memory of the device") {
  for (const Launch launch : kLaunches) {
    in_every_order([&] {
      Fixture f;
      Executor executor(f.device, f.program(), {.launch = launch});
      const cuda::DeviceMemory memory = cuda::device_memory(35 * sizeof(float));
      auto* const floats = reinterpret_cast<float*>(memory.get());
      const auto view = [&](core::Shape shape) {
        return runtime::MutableTensorView(floats, core::ElementType::f32, std::move(shape), true);
      };
      const auto given = [&](std::int64_t count) {
        return runtime::TensorView(floats, core::ElementType::f32, count, true);
      };
      Floats x(35);
      std::fill_n(floats, 35, 3.0F);
      executor.set("x", given(35));
      std::fill_n(floats, 35, 0.0F);
      executor.get("x", x);
      CHECK(x == Floats(35, 3));
      executor.get("x", view({5, 7}));
      CHECK(Floats(floats, floats + 35) == x);

      std::fill_n(floats, 35, 5.0F);
      executor.enqueue();
      executor.stage("x", given(35));
      std::fill_n(floats, 35, 0.0F);  // the caller may reuse the memory of staged values at once
      executor.get("x", x);
      CHECK(x == Floats(35, 3));
      executor.enqueue();
      executor.get("x", x);
      CHECK(x == Floats(35, 5));
      Floats loss(1);
      executor.get_output("loss", loss);
      floats[0] = -1;
      executor.get_output("loss", view({1}));
      CHECK(floats[0] == loss[0]);
      CHECK(contains(error_of<InputError>([&] { executor.set("x", given(34)); }), "34 are given"));
      CHECK(contains(error_of<InputError>([&] { executor.get("x", view({7, 5})); }), "the shape [5, 7]"));
    });
  }
}

TEST_CASE("values in memory of the device wait for the caller's stream") {
  in_every_order([] {
    Fixture f;
    Executor executor(f.device, f.program());
    const cuda::DeviceMemory memory = cuda::device_memory(35 * sizeof(float));
    auto* const floats = reinterpret_cast<float*>(memory.get());
    const cuda::Stream stream = cuda::make_stream();
    std::fill_n(floats, 35, 0.0F);
    runtime::TensorView given(floats, core::ElementType::f32, 35, true);
    runtime::MutableTensorView room(floats, core::ElementType::f32, 35, true);
    given.stream = room.stream = stream.get();
    const auto write_later = [&](float value) {
      fake::enqueue(
          stream.get(), [=] { std::fill_n(floats, 35, value); }, "the caller's work");
    };
    Floats x(35);
    write_later(3);
    executor.set("x", given);
    executor.get("x", x);
    CHECK(x == Floats(35, 3));
    write_later(5);
    executor.stage("x", given);
    write_later(7);
    executor.get("x", room);
    CHECK(Floats(floats, floats + 35) == Floats(35, 3));
    executor.run();
    executor.get("x", x);
    CHECK(x == Floats(35, 5));
    Floats gradient(63);
    executor.get_output("dw1", gradient);
    const cuda::DeviceMemory more = cuda::device_memory(63 * sizeof(float));
    auto* const read = reinterpret_cast<float*>(more.get());
    fake::enqueue(
        stream.get(), [=] { std::fill_n(read, 63, 9.0F); }, "the caller's work");
    room = {read, core::ElementType::f32, 63, true};
    room.stream = stream.get();
    executor.get_output("dw1", room);
    CHECK(Floats(read, read + 63) == gradient);
  });
}

TEST_CASE("memory of the host or of another device is refused where the executor's device is meant") {
  const Gpu gpu;
  fake::set_device_count(2);
  Fixture f(1);
  Executor executor(f.device, f.program());
  executor.run();
  Floats host(63);
  const cuda::DeviceMemory memory = cuda::device_memory(63 * sizeof(float));  // memory of device 0
  const auto refused = [&](void* data, const std::string& why) {
    const auto check = [&](const auto& call) { check_line(error_of<InputError>(call), {why}); };
    const runtime::MutableTensorView room(data, core::ElementType::f32, 35, true);
    const runtime::TensorView given(data, core::ElementType::f32, 35, true);
    check([&] { executor.set("x", given); });
    CHECK(contains(error_of<InputError>([&] { executor.set("x", given); }), "the array for 'x' must"));
    check([&] { executor.stage("x", given); });
    check([&] { executor.get("x", room); });
    check([&] { executor.get_output("dw1", {data, core::ElementType::f32, 63, true}); });
  };
  refused(host.data(), " must be in memory of a GPU, but the pointer is of the host");
  refused(memory.get(), " must be in memory of device 1, which executes the step; it is in that of device 0");
  std::vector<std::byte> bytes(static_cast<std::size_t>(f.program().arena_bytes) + 256);
  void* arena = bytes.data();
  std::size_t space = bytes.size();
  std::align(256, space - 256, arena, space);
  const std::string error = error_of<InputError>([&] {
    Executor(f.device, f.program(), {.arena = {static_cast<std::byte*>(arena), f.program().arena_bytes}});
  });
  CHECK(contains(error, "the arena must be in memory of a GPU"));
}

TEST_CASE("bf16 tensors: values are rounded, fp32 copies are not, and both are set together") {
  const Gpu gpu;
  Device device;
  const Graph graph = device.with_scratch(gpt2_with_updates(Precision::bf16), false);
  Executor executor(device, device_program(device, graph));
  const auto [weight, master] = weight_with_master(graph);
  const auto count = static_cast<std::size_t>(core::element_count(weight.shape));
  const auto elements = static_cast<std::int64_t>(count);
  const float exact = 1.001F;
  const auto rounded = static_cast<float>(core::Bf16(exact));
  REQUIRE(rounded != exact);
  std::vector<core::Bf16> halves(count);
  Floats read(count);
  for (const bool staged : {false, true}) {
    const auto give = [&](const runtime::TensorView& values) {
      staged ? executor.stage(weight.name, values) : executor.set(weight.name, values);
      // With a learning rate of 0 and momenta of 0, a step does not change the weights.
      executor.set("learning_rate", Floats{0});
      if (staged) executor.run();
    };
    give(Floats(count, exact));
    executor.get(weight.name, {halves.data(), core::ElementType::bf16, elements});
    CHECK(static_cast<float>(halves.back()) == rounded);
    executor.get(weight.name, read);
    CHECK(read == Floats(count, exact));
    executor.get(master, read);
    CHECK(read == Floats(count, exact));
    for (core::Bf16& half : halves) half = core::Bf16(2.5F);
    give({halves.data(), core::ElementType::bf16, elements});
    executor.get(weight.name, read);
    CHECK(read == Floats(count, 2.5F));
  }
  halves[0].bits = 0x7FFF;
  CHECK(contains(error_of<InputError>([&] {
                   executor.set(weight.name, {halves.data(), core::ElementType::bf16, elements});
                 }),
                 "element 0 for resident"));
}

TEST_CASE("bf16 tensors and their fp32 copies: the device converts values in its memory") {
  in_every_order([] {
    Device device;
    const Graph graph = device.with_scratch(gpt2_with_updates(Precision::bf16), false);
    Executor executor(device, device_program(device, graph));
    const auto [weight, master] = weight_with_master(graph);
    const auto count = static_cast<std::size_t>(core::element_count(weight.shape));
    const cuda::DeviceMemory memory = cuda::device_memory(static_cast<std::int64_t>(count * sizeof(float)));
    auto* const floats = reinterpret_cast<float*>(memory.get());
    auto* const halves = reinterpret_cast<core::Bf16*>(memory.get());
    const runtime::TensorView as_floats(floats, core::ElementType::f32, weight.shape, true);
    const runtime::TensorView as_halves(halves, core::ElementType::bf16, weight.shape, true);
    const float exact = 1.001F;
    Floats read(count);
    std::vector<core::Bf16> stored(count);
    for (const bool staged : {false, true}) {
      const auto give = [&](const runtime::TensorView& values) {
        staged ? executor.stage(weight.name, values) : executor.set(weight.name, values);
        executor.set("learning_rate", Floats{0});  // so that a step does not change the weights
        if (staged) executor.run();
        executor.get(weight.name, {stored.data(), core::ElementType::bf16, weight.shape});
        executor.get(master, read);
      };
      std::fill_n(floats, count, exact);
      give(as_floats);
      CHECK(stored == std::vector(count, core::Bf16(exact)));
      CHECK(read == Floats(count, exact));
      std::fill_n(floats, count, 0.0F);
      executor.get(weight.name, {floats, core::ElementType::f32, weight.shape, true});
      CHECK(Floats(floats, floats + count) == read);
      executor.get(weight.name, {halves, core::ElementType::bf16, weight.shape, true});
      CHECK(std::vector(halves, halves + count) == stored);
      std::fill_n(halves, count, core::Bf16(2.5F));
      give(as_halves);
      CHECK(stored == std::vector(count, core::Bf16(2.5F)));
      CHECK(read == Floats(count, 2.5F));
    }
  });
}

TEST_CASE("a raised stop flag ends run and enqueue before a step, and keeps staged values for a later one") {
  const Gpu gpu;
  Fixture f;
  std::atomic<bool> stop = false;
  Executor executor(f.device, f.program(), {.stop = &stop});
  executor.stage("x", Floats(35, 2));
  stop = true;
  CHECK_THROWS_AS(executor.run(), core::InterruptedError);
  CHECK_THROWS_AS(executor.enqueue(), core::InterruptedError);
  stop = false;
  executor.run();
  Floats x(35);
  executor.get("x", x);
  CHECK(x == Floats(35, 2));
}

TEST_CASE("any call may fail while values are set, staged and read: an error says so, and nothing is left behind") {
  fake::reset();
  const runtime::Program program = Fixture().program();
  std::map<std::string, std::int64_t> calls;
  const auto use = [&] {
    Device device;
    const cuda::DeviceMemory memory = cuda::device_memory(35 * sizeof(float));
    const cuda::Stream stream = cuda::make_stream();
    Executor executor(device, program);
    // If a call fails, the record of an event can still be pending on the caller's stream. So the test waits for this
    // stream before the stream is destroyed.
    const WaitAtEnd wait{stream.get()};
    runtime::TensorView on_device(memory.get(), core::ElementType::f32, 35, true);
    on_device.stream = stream.get();
    Floats x(35), loss(1);
    for (int i = 0; i < 2; ++i) {
      executor.stage("x", x);
      executor.set_dropout_seed(3);
      executor.enqueue();
    }
    executor.stage("x", on_device);
    executor.run();
    executor.set("x", x);
    executor.set("x", on_device);
    executor.get("x", x);
    executor.get_output("loss", loss);
    executor.get_output("loss", {memory.get(), core::ElementType::f32, 1, true});
    executor.reset();
    executor.wait();
    calls = fake::calls();
  };
  fake::reset();
  use();
  const auto every_call = calls;
  for (const auto& [function, count] : every_call) {
    if (!contains(function, "Destroy")) check_failures(function, count, use);
  }
}

}  // namespace cairn::tests::executor_values_test
