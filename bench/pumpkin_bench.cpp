// Measures on the host how fast the dynamic program for parallel chains fills its table
// (solvers/order/device/pumpkin.h): `--benchmark_filter=pumpkin_table`. A state of the table is a set of chains that
// have run. The states with the same number of chains form a layer. Each state is computed from the states that lack
// exactly one of its chains. The table stores, for each state, the best memory profile as a list of segments (a rise of
// memory, followed by a fall). Counters:
//   states    states computed per second
//   read      bytes per second that are read from the layer below
//   resident  largest number of bytes in memory
//   segments  segments per state, for the layer in which this number is largest
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>

#include "cairn/bench/pumpkin_chains.h"
#include "cairn/bench/rate.h"
#include "cairn/solvers/order/device/pumpkin.h"
#include "cairn/solvers/order/device/pumpkin_layers.h"

namespace cairn::bench {
namespace {

void pumpkin_table(benchmark::State& state) {
  const std::int64_t branches = state.range(0);
  const solvers::PumpkinProblem problem = chains(branches, 16, 1);
  const core::HostMachine machine(static_cast<int>(state.range(1)));
  solvers::PumpkinAnswer answer;
  for (auto _ : state) answer = solve_pumpkin(machine, problem, {});
  double states = 0, read = 0, longest = 0;
  const std::vector<std::int64_t> layers = count_states(problem);
  for (std::size_t size = 0; size < layers.size(); ++size) {
    const auto segments = static_cast<double>(answer.segments_of_layer[size]);
    states += static_cast<double>(layers[size]);
    // A state in which `size` chains have run is read once for each chain that has not run in it.
    read += segments * static_cast<double>(layers.size() - 1 - size) * sizeof(solvers::NarrowSegment);
    longest = std::max(longest, segments / static_cast<double>(layers[size]));
  }
  state.counters["states"] = rate(states);
  state.counters["read"] = rate(read, benchmark::Counter::kIs1024);
  state.counters["resident"] =
      benchmark::Counter(static_cast<double>(answer.bytes), benchmark::Counter::kDefaults, benchmark::Counter::kIs1024);
  state.counters["segments"] = longest;
}
BENCHMARK(pumpkin_table)
    ->ArgNames({"branches", "threads"})
    ->Unit(benchmark::kMillisecond)
    ->ArgsProduct({benchmark::CreateDenseRange(12, 20, 2), {1}})
    ->Args({20, 0});
// With 28 branches, the table with all states takes about 1.2 GB. This benchmark runs only once.
BENCHMARK(pumpkin_table)
    ->ArgNames({"branches", "threads"})
    ->Unit(benchmark::kMillisecond)
    ->Args({28, 0})
    ->Iterations(1);

}  // namespace
}  // namespace cairn::bench
