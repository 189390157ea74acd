// Tests how values go into cuda::Executor and come out of it while steps are enqueued, in every order in which the fake
// runtime runs work.
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

/// What a tiny gpt2 that adamw trains gets in one step.
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

Graph gpt2_with_updates(Precision precision) {
  for (const Graph& graph : updated_models()) {
    const std::int32_t last = runtime::find_resident(graph, "learning_rate") + 1;
    const bool adamw = graph.residents()[static_cast<std::size_t>(last)].name == "step";
    if (graph.name() == "gpt2" && adamw) return core::with_precision(graph, precision);
  }
  throw std::out_of_range("no gpt2 with adamw");
}

/// Returns the elements of all weights and of the optimizer's state.
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
          feed = {};  // the memory of staged values may be reused
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
      executor.stage("x", Floats(35, 6));  // no step takes these values before the executor is destroyed
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
  executor.reset();  // before a step has taken the seed
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
        executor.run(true);  // times every op, but performs one step
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
      const auto view = [&](std::int64_t count) {
        return runtime::MutableTensorView(floats, core::ElementType::f32, count, true);
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
      executor.get("x", view(35));
      CHECK(Floats(floats, floats + 35) == x);

      std::fill_n(floats, 35, 5.0F);
      executor.enqueue();
      executor.stage("x", given(35));
      std::fill_n(floats, 35, 0.0F);  // the memory of staged values may be reused
      executor.get("x", x);
      CHECK(x == Floats(35, 3));
      executor.enqueue();
      executor.get("x", x);
      CHECK(x == Floats(35, 5));
      CHECK(contains(error_of<InputError>([&] { executor.set("x", given(34)); }), "34 are given"));
      CHECK(contains(error_of<InputError>([&] { executor.get_output("loss", view(1)); }), "memory of the host"));
    });
  }
}

TEST_CASE("bf16 tensors: values are rounded, fp32 copies are not, and both are set together") {
  const Gpu gpu;
  Device device;
  const Graph graph = device.with_scratch(gpt2_with_updates(Precision::bf16), false);
  Executor executor(device, device_program(device, graph));
  const auto masters = [&] {
    for (std::size_t r = 0; r < graph.residents().size(); ++r) {
      const std::int32_t of = graph.residents()[r].master_of;
      if (of >= 0) return std::pair(graph.residents()[static_cast<std::size_t>(of)], graph.residents()[r].name);
    }
    throw std::out_of_range("no fp32 copy");
  }();
  const auto& [weight, master] = masters;
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
      // A rate and momenta of 0 leave the weights as they are.
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
  // Values in memory of the device would need a conversion there.
  for (const core::ElementType type : {core::ElementType::f32, core::ElementType::bf16}) {
    const std::string error = error_of<InputError>([&] {
      executor.set(weight.name, {halves.data(), type, elements, true});
    });
    CHECK(contains(error, "is kept as bf16 and as fp32; set it from memory of the host"));
  }
  halves[0].bits = 0x7FFF;
  CHECK(contains(error_of<InputError>([&] {
                   executor.set(weight.name, {halves.data(), core::ElementType::bf16, elements});
                 }),
                 "element 0 for resident"));
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
    Executor executor(device, program);
    const runtime::TensorView on_device(memory.get(), core::ElementType::f32, 35, true);
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
    executor.reset();
    executor.wait();
    executor.get_output("loss", loss);
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
