// Measures the comparison of memory profiles (dominance), and the solvers of solvers/order/, which lower the peak
// without recomputation. Only the search of the solver `order` uses several threads. The benchmarks whose names contain
// `growth` run for sizes that double several times. All other benchmarks run for the sizes for which
// bench/results/solvers.md has figures.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/random.h"
#include "cairn/models/random_graphs.h"
#include "cairn/solvers/order/internal/papers/caduceus.h"
#include "cairn/solvers/order/internal/reduction/step_graph.h"
#include "cairn/solvers/order/internal/search/exact.h"
#include "cairn/solvers/order/support/order.h"
#include "cairn/tests/solvers/order/caduceus_cases.h"

namespace cairn::bench {
namespace {

using models::GeneratedSizes;
using solvers::OrderOptions;
using solvers::Solution;

OrderOptions one_thread(double seconds = 60) {
  OrderOptions options;
  options.threads = 1;
  options.limit.seconds = seconds;
  return options;
}

/// Makes a benchmark run for sizes that double from kLeast to kMost, and report the complexity (O(n), O(n log n), ...)
/// that fits the times.
template <std::int64_t kLeast, std::int64_t kMost>
void doubling(benchmark::internal::Benchmark* growth) {
  for (std::int64_t n = kLeast; n <= kMost; n *= 2) growth->Arg(n);
  growth->Complexity();
}

/// Returns a random walk, which resembles the memory profile of a schedule.
std::vector<std::int64_t> walk(std::int64_t length, std::uint64_t seed) {
  core::Random random(seed);
  std::vector<std::int64_t> profile(static_cast<std::size_t>(length));
  std::int64_t bytes = 0;
  for (std::int64_t& entry : profile) entry = bytes += static_cast<std::int64_t>(random.next() % 2001) - 1000;
  return profile;
}
/// Returns a profile in which each peak is lower than the previous peak and each valley higher than the previous
/// valley. So the canonical form of the profile has as many segments as possible.
std::vector<std::int64_t> contracting(std::int64_t length) {
  std::vector<std::int64_t> profile(static_cast<std::size_t>(length));
  for (std::int64_t i = 0; i < length; ++i) profile[i] = i % 2 == 0 ? i : 2 * length - i;
  return profile;
}

void compare(benchmark::State& state, const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  for (auto _ : state) benchmark::DoNotOptimize(core::dominates(a, b));
  state.SetComplexityN(state.range(0));
}
void dominance_growth(benchmark::State& state) { compare(state, walk(state.range(0), 1), walk(state.range(0), 2)); }
void dominance_of_itself_growth(benchmark::State& state) {
  const auto profile = contracting(state.range(0));
  compare(state, profile, profile);
}
BENCHMARK(dominance_growth)->Unit(benchmark::kMillisecond)->Apply(doubling<125'000, 1'000'000>);
BENCHMARK(dominance_of_itself_growth)->Unit(benchmark::kMillisecond)->Apply(doubling<125'000, 1'000'000>);

/// Merges 32 chains, which together have state.range(0) segments.
void merge_growth(benchmark::State& state) {
  std::vector<std::vector<core::Segment>> parts;
  core::Random random(1);
  for (int part = 0; part < 32; ++part) {
    std::vector<std::int64_t> profile = contracting(2 * state.range(0) / 32);
    for (std::int64_t& entry : profile) entry = entry * 64 + static_cast<std::int64_t>(random.next() % 64);
    parts.push_back(core::canonical(profile).segments);
  }
  for (auto _ : state) benchmark::DoNotOptimize(core::merge_segments(parts));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(merge_growth)->Unit(benchmark::kMillisecond)->Apply(doubling<125'000, 1'000'000>);

using Solver = Solution (*)(const core::Graph&, const OrderOptions&);

void solve(benchmark::State& state, const core::Graph& graph, Solver solver, const OrderOptions& options) {
  Solution solution;
  for (auto _ : state) solution = solver(graph, options);
  state.counters["optimal"] = solution.status == solvers::Status::optimal;
  state.counters["peak_pct"] = 100.0 * static_cast<double>(solution.peak) /
                               static_cast<double>(core::evaluate(graph, core::baseline_schedule(graph)).peak);
}

void pumpkin_random(benchmark::State& state) {
  const auto branches = static_cast<core::NodeId>(state.range(0));
  solve(state, models::generate_pumpkin(branches, 32, {}, 1), solvers::pumpkin, one_thread());
}
void pumpkin_valleys(benchmark::State& state) {
  const auto branches = static_cast<core::NodeId>(state.range(0));
  solve(state, models::generate_valley_pumpkin(branches, 32, 1), solvers::pumpkin, one_thread());
}
void pumpkin_rising_valleys(benchmark::State& state) {
  const auto branches = static_cast<core::NodeId>(state.range(0));
  solve(state, models::generate_valley_pumpkin(branches, 32, 1, models::Valleys::rising), solvers::pumpkin,
        one_thread());
}
void pumpkin_three_partition(benchmark::State& state) {
  const auto numbers = models::feasible_three_partition(static_cast<int>(state.range(0)) / 3, 1000, 1);
  const auto instance = models::three_partition_pumpkin(numbers);
  solve(state, instance.graph, solvers::pumpkin, one_thread());
  if (solvers::pumpkin(instance.graph, one_thread()).peak != instance.feasible_peak)
    state.SkipWithError("not the known optimum");
}
BENCHMARK(pumpkin_random)->Unit(benchmark::kMillisecond)->Arg(12)->Arg(18);
BENCHMARK(pumpkin_valleys)->Unit(benchmark::kMillisecond)->Arg(12)->Arg(18);
BENCHMARK(pumpkin_rising_valleys)->Unit(benchmark::kMillisecond)->Arg(12)->Arg(18);
BENCHMARK(pumpkin_three_partition)->Unit(benchmark::kMillisecond)->Arg(9)->Arg(18);

void caduceus_optimal(benchmark::State& state) {
  const auto caduceus = tests::generate_caduceus(100'000, 100, static_cast<core::NodeId>(state.range(0)), 1000, 1);
  for (auto _ : state) benchmark::DoNotOptimize(solvers::optimal_caduceus(caduceus));
}
void caduceus_dominant(benchmark::State& state) {
  const auto caduceus = tests::generate_caduceus(100'000, 100, static_cast<core::NodeId>(state.range(0)), 1000, 1);
  for (auto _ : state) benchmark::DoNotOptimize(solvers::dominant_caduceus(caduceus));
}
BENCHMARK(caduceus_optimal)->Unit(benchmark::kMillisecond)->RangeMultiplier(10)->Range(100, 50'000);
BENCHMARK(caduceus_dominant)->Unit(benchmark::kMillisecond)->RangeMultiplier(10)->Range(100, 50'000);

void series_parallel_growth(benchmark::State& state) {
  const auto nodes = static_cast<core::NodeId>(state.range(0));
  solve(state, models::generate_series_parallel(nodes, 3, {}, 1), solvers::series_parallel, one_thread());
  state.SetComplexityN(nodes);
}
void series_parallel_degree_6(benchmark::State& state) {
  solve(state, models::generate_series_parallel(1000, 6, {}, static_cast<std::uint64_t>(state.range(0))),
        solvers::series_parallel, one_thread());
}
void starborescence_degree_6(benchmark::State& state) {
  solve(state, models::generate_starborescence(1000, 6, {}, static_cast<std::uint64_t>(state.range(0))),
        solvers::series_parallel, one_thread());
}
BENCHMARK(series_parallel_growth)->Unit(benchmark::kMillisecond)->Apply(doubling<12'500, 200'000>);
BENCHMARK(series_parallel_degree_6)->Unit(benchmark::kMillisecond)->DenseRange(1, 5);
BENCHMARK(starborescence_degree_6)->Unit(benchmark::kMillisecond)->DenseRange(1, 5);

void in_tree_growth(benchmark::State& state) {
  const auto nodes = static_cast<core::NodeId>(state.range(0));
  solve(state, models::generate_in_tree(nodes, 4, {}, 1), solvers::in_tree, one_thread());
  state.SetComplexityN(nodes);
}
void out_tree_growth(benchmark::State& state) {
  const auto nodes = static_cast<core::NodeId>(state.range(0));
  solve(state, models::generate_out_tree(nodes, 4, {}, 1), solvers::out_tree, one_thread());
  state.SetComplexityN(nodes);
}
/// Measures the solver `order` on series-parallel graphs. The solver's reductions turn such a graph into a path, so
/// that no search is needed.
void order_growth(benchmark::State& state) {
  const auto nodes = static_cast<core::NodeId>(state.range(0));
  solve(state, models::generate_series_parallel(nodes, 3, {}, 1), solvers::order, one_thread());
  state.SetComplexityN(nodes);
}
BENCHMARK(in_tree_growth)->Unit(benchmark::kMillisecond)->Apply(doubling<12'500, 200'000>);
BENCHMARK(out_tree_growth)->Unit(benchmark::kMillisecond)->Apply(doubling<12'500, 200'000>);
BENCHMARK(order_growth)->Unit(benchmark::kMillisecond)->Apply(doubling<12'500, 200'000>);

/// Measures the exact search on 50 random graphs. Reports the median and the largest of the seconds per graph, and the
/// percentage of graphs for which the search proved an optimal order within ten seconds.
void exact_random(benchmark::State& state) {
  const auto nodes = static_cast<core::NodeId>(state.range(0));
  std::vector<double> seconds;
  int proved = 0;
  for (auto _ : state) {
    seconds.clear();
    proved = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      const solvers::StepGraph graph(models::generate_random(nodes, 2 * nodes, {}, seed));
      core::Limit limit;
      limit.seconds = 10;
      core::Stopwatch watch(limit);
      proved += solvers::exact_order(graph, {}, watch).proved ? 1 : 0;
      seconds.push_back(watch.seconds());
    }
  }
  std::sort(seconds.begin(), seconds.end());
  state.counters["median_s"] = seconds[seconds.size() / 2];
  state.counters["most_s"] = seconds.back();
  state.counters["proved_pct"] = 100.0 * proved / static_cast<double>(seconds.size());
}
BENCHMARK(exact_random)->Unit(benchmark::kSecond)->Iterations(1)->Arg(40)->Arg(60);

}  // namespace
}  // namespace cairn::bench
