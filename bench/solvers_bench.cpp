// Solvers on graphs of 20,000 nodes and 40,000 edges at half of the baseline's peak.
#include <benchmark/benchmark.h>

#include "cairn/bench/random_layered.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"
#include "cairn/solvers/remat/baselines.h"
#include "cairn/solvers/remat/tw_remat.h"

namespace {

using namespace cairn;

core::Graph graph_for(std::int64_t kind) {
  return kind == 0 ? bench::training_chain(20'000, 40'000) : bench::random_layered(20'000, 40'000);
}

template <class Solve>
void solve_at_half(benchmark::State& state, Solve solve) {
  const core::Graph graph = graph_for(state.range(0));
  const core::Evaluation baseline = core::evaluate(graph, core::baseline_schedule(graph));
  solvers::Solution solution;
  for (auto _ : state) {
    solvers::TwRematOptions options;
    options.budget = baseline.peak / 2;
    solution = solve(graph, options);
  }
  state.SetLabel(state.range(0) == 0 ? "training chain" : "random layered");
  state.counters["peak/baseline"] = static_cast<double>(solution.peak) / static_cast<double>(baseline.peak);
  state.counters["cost/baseline"] = static_cast<double>(solution.cost) / static_cast<double>(baseline.cost);
}

void tw(benchmark::State& state) { solve_at_half(state, solvers::tw_remat); }
BENCHMARK(tw)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void chen(benchmark::State& state) { solve_at_half(state, solvers::chen_remat); }
BENCHMARK(chen)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void min_fill(benchmark::State& state) {
  const core::Graph graph = graph_for(state.range(0));
  solvers::TreeDecomposition decomposition;
  for (auto _ : state) decomposition = solvers::min_fill_decomposition(graph);
  state.counters["width"] = decomposition.width;
}
BENCHMARK(min_fill)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
