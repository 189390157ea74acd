// Measures two searches that solvers can run on a GPU: the dynamic program for parallel chains (here of 16 nodes each),
// and the search for key orders, i.e. for orders of certain nodes of an in-forest (docs/order.md explains both).
// bench/pumpkin_bench.cpp and bench/key_orders_bench.cpp measure the same searches on the host.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "cairn/bench/key_tree.h"
#include "cairn/bench/pumpkin_chains.h"
#include "cairn/bench/rate.h"
#include "cairn/cuda/support/accelerator.h"
#include "cairn/solvers/common/support/accelerator.h"

namespace cairn::bench {
namespace {

/// Measures the dynamic program for parallel chains. The counter `resident` is the largest number of bytes of device
/// memory in use.
void device_pumpkin(benchmark::State& state) {
  const solvers::PumpkinProblem problem = chains(state.range(0), 16, 1);
  const auto accelerator = cuda::make_accelerator();
  solvers::PumpkinAnswer answer;
  for (auto _ : state) answer = accelerator->pumpkin(problem, {});
  if (answer.end != solvers::PumpkinAnswer::End::solved) state.SkipWithError("the table does not fit");
  state.counters["states"] = rate(static_cast<double>(std::int64_t{1} << state.range(0)));
  state.counters["resident"] = static_cast<double>(answer.bytes);
}
BENCHMARK(device_pumpkin)->DenseRange(12, 28, 2)->UseRealTime()->Unit(benchmark::kMillisecond);

void device_key_orders(benchmark::State& state) {
  constexpr std::int64_t kMostWork = 4'000'000;
  const solvers::KeyTree tree = key_tree(static_cast<int>(state.range(0)));
  const auto accelerator = cuda::make_accelerator();
  solvers::KeyOrderOptions options;
  solvers::KeyOrdersFound found;
  for (auto _ : state) {
    std::int64_t left = kMostWork;
    options.stop = [&](std::int64_t work) { return (left -= work) <= 0; };
    found = accelerator->key_orders(tree, options);
  }
  state.counters["relaxations"] = rate(static_cast<double>(found.relaxations));
  state.counters["complete"] = found.complete;
}
BENCHMARK(device_key_orders)->DenseRange(8, 12)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cairn::bench
