// Measures the simulator on a GPU, in candidates (random schedules, see sim::Generator) per second. Depending on the
// benchmark, the candidates are in device memory from the beginning, are generated there, or are copied there from the
// host. The graphs have 250 to 10,000 nodes. The arguments of every benchmark are the number of nodes and
// sim::Generator::moves, the largest number of recomputations of a candidate. Counters:
// - bytes/s: the bytes that the benchmark must at least read, write or transfer, per second.
// - of_copy: bytes/s divided by the rate at which the device copies memory.
// - x_core: candidates per second, divided by the candidates per second of one host core.
//   cairn_cuda_bench --benchmark_filter=device
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "cairn/bench/random_layered.h"
#include "cairn/bench/rate.h"
#include "cairn/cuda/device.h"
#include "cairn/cuda/internal/machine.cuh"
#include "cairn/sim/device/machine_simulator.h"
#include "cairn/sim/simulator.h"

namespace cairn {
namespace {

using bench::rate;
using cuda::check;

constexpr std::int64_t kCount = std::int64_t{1} << 18;

class Resident final : public sim::device::MachineSimulator<cuda::Machine, std::uint16_t> {
 public:
  using Base = sim::device::MachineSimulator<cuda::Machine, std::uint16_t>;
  Resident(cuda::Machine& machine, const core::Graph& graph) : Base(machine, graph) {}
  std::string backend() const override { return "cuda"; }
  std::string device() const override { return "bench"; }
  using Base::draw;
  using Base::evaluate_piece;
  using Base::piece_of;
};

/// Calls body(), which must enqueue work on the machine's stream, and returns the seconds that this work takes there.
template <class Body>
double seconds_of(const cuda::Machine& machine, const Body& body) {
  const cuda::Event start = cuda::make_event(cudaEventDefault), end = cuda::make_event(cudaEventDefault);
  check(cudaEventRecord(start.get(), machine.stream()), "an event");
  body();
  check(cudaEventRecord(end.get(), machine.stream()), "an event");
  check(cudaEventSynchronize(end.get()), "waiting for the device");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start.get(), end.get()), "an event's time");
  return milliseconds * 1e-3;
}

double device_copy_bandwidth() {
  static const double bandwidth = [] {
    constexpr std::int64_t kBytes = std::int64_t{1} << 30;
    const cuda::Machine machine;
    const auto from = machine.array<std::byte>(kBytes), to = machine.array<std::byte>(kBytes);
    double best = 0;
    for (int i = 0; i < 5; ++i) {
      const double seconds = seconds_of(machine, [&] {
        check(cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice, machine.stream()), "a copy");
      });
      best = best * seconds > 2.0 * kBytes ? best : 2.0 * kBytes / seconds;
    }
    return best;
  }();
  return bandwidth;
}

double core_rate(const core::Graph& graph, const sim::Generator& generator) {
  constexpr std::int64_t kOnHost = 4096;
  const auto host = sim::host_simulator(graph, 1);
  const sim::ScheduleBatch batch = host->generate(generator, 0, kOnHost);
  sim::Outcomes outcomes;
  host->evaluate(batch, outcomes);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 4; ++i) host->evaluate(batch, outcomes);
  return 4 * kOnHost / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Setting {
  explicit Setting(const benchmark::State& state)
      : graph(bench::random_layered(static_cast<core::NodeId>(state.range(0)), state.range(0) * 5875 / 1000)),
        generator{1, static_cast<std::int32_t>(state.range(1))},
        simulator(machine, graph),
        count(std::min(kCount, simulator.piece_of(generator))) {}
  core::Graph graph;
  sim::Generator generator;
  cuda::Machine machine;
  Resident simulator;
  std::int64_t count;
};

void report(benchmark::State& state, const Setting& setting, double bytes_of_candidate) {
  const auto candidates = static_cast<double>(setting.count);
  state.counters["candidates/s"] = rate(candidates);
  state.counters["bytes/s"] = rate(candidates * bytes_of_candidate);
  state.counters["of_copy"] = rate(candidates * bytes_of_candidate / device_copy_bandwidth());
}

/// Measures the evaluation of a batch in device memory. The counter bytes/s counts, for each candidate, 2 bytes for
/// each step and 21 bytes for the outcome, as if the evaluation read every step of the batch only once.
void device_evaluate(benchmark::State& state) {
  Setting setting(state);
  const auto batch = setting.simulator.draw(setting.generator, 0, setting.count);
  setting.simulator.evaluate_piece(batch, setting.generator.moves == 0);
  for (auto _ : state) {
    state.SetIterationTime(
        seconds_of(setting.machine, [&] { setting.simulator.evaluate_piece(batch, setting.generator.moves == 0); }));
  }
  report(state, setting, 2.0 * static_cast<double>(state.range(0)) + 21);
  state.counters["x_core"] = rate(static_cast<double>(setting.count) / core_rate(setting.graph, setting.generator));
}

void device_draw(benchmark::State& state) {
  Setting setting(state);
  std::int64_t first = 0;
  for (auto _ : state) {
    state.SetIterationTime(
        seconds_of(setting.machine, [&] { setting.simulator.draw(setting.generator, first, setting.count); }));
    first += setting.count;
  }
  report(state, setting, 2.0 * static_cast<double>(state.range(0) + state.range(1)));
}

/// Measures a whole sweep: draws and evaluates candidates, selects results on the device, and copies to the host what
/// sim::Tally needs for its statistics.
void device_sweep(benchmark::State& state) {
  Setting setting(state);
  sim::Tally tally(sim::tally_options(setting.graph));
  std::int64_t first = 0;
  for (auto _ : state) {
    state.SetIterationTime(
        seconds_of(setting.machine, [&] { setting.simulator.sweep(setting.generator, first, setting.count, tally); }));
    first += setting.count;
  }
  report(state, setting, 4.0 * static_cast<double>(state.range(0) + state.range(1)) + 42);
}

/// Measures the evaluation of a batch in host memory: copies the batch to the device, evaluates it, and copies the
/// outcomes back.
void device_evaluate_from_host(benchmark::State& state) {
  Setting setting(state);
  const sim::ScheduleBatch batch = sim::host_simulator(setting.graph)->generate(setting.generator, 0, setting.count);
  sim::Outcomes outcomes;
  for (auto _ : state) {
    state.SetIterationTime(seconds_of(setting.machine, [&] { setting.simulator.evaluate(batch, outcomes); }));
  }
  report(state, setting, static_cast<double>(batch.bytes()) / static_cast<double>(setting.count) + 21);
}

#define CAIRN_DEVICE_BENCH(name) \
  BENCHMARK(name)->Args({250, 0})->Args({1000, 0})->Args({1000, 1000})->UseManualTime()->Unit(benchmark::kMillisecond)
CAIRN_DEVICE_BENCH(device_evaluate)->Args({10'000, 0});
CAIRN_DEVICE_BENCH(device_draw);
CAIRN_DEVICE_BENCH(device_sweep);
CAIRN_DEVICE_BENCH(device_evaluate_from_host);

}  // namespace
}  // namespace cairn
