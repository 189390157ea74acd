// Measures the time of solvers on graphs of 20,000 nodes and 40,000 edges, with a budget of half of the baseline's
// peak. H-Partition (the partition that HiRemate uses) is measured on 100,000 nodes.
#include <benchmark/benchmark.h>

#include <iterator>

#include "cairn/bench/random_layered.h"
#include "cairn/core/profile.h"
#include "cairn/models/random_graphs.h"
#include "cairn/models/registry.h"
#include "cairn/solvers/remat/baselines/baselines.h"
#include "cairn/solvers/remat/hiremate/partition.h"
#include "cairn/solvers/remat/kumar/tw_remat.h"

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

solvers::PartitionGraph partition_graph(const core::Graph& graph) {
  solvers::PartitionGraph result{.items = graph.node_count(), .values = {}};
  for (core::ValueId v = 0; v < graph.value_count(); ++v) {
    const auto readers = graph.readers(v);
    result.values.push_back({graph.value_size(v), graph.producer(v), {readers.begin(), readers.end()}});
  }
  return result;
}

solvers::PartitionGraph forward_part(const char* model, std::int64_t layers) {
  models::BuildOptions options;
  options.values = {{"layers", layers}};
  return partition_graph(core::forward_part(models::build_model(model, options)));
}

struct PartitionKind {
  const char* name;
  solvers::PartitionGraph (*make)();
};
constexpr PartitionKind kPartitionKinds[] = {
    {"forward part of gpt2, 5,000 layers", [] { return forward_part("gpt2", 5000); }},
    {"forward part of transformer, 1,700 + 1,700 layers", [] { return forward_part("transformer", 1700); }},
    {"training chain", [] { return partition_graph(bench::training_chain(100'000, 200'000)); }},
    {"random layered", [] { return partition_graph(bench::random_layered(100'000, 200'000)); }},
    {"series-parallel", [] { return partition_graph(models::generate_series_parallel(100'000, 6, {}, 1)); }},
    {"star",
     [] {
       solvers::PartitionGraph graph{.items = 100'000, .values = {{1, 0, {}}}};
       for (std::int32_t x = 1; x < graph.items; ++x) graph.values[0].readers.push_back(x);
       return graph;
     }},
};

void h_partition(benchmark::State& state) {
  const auto& [name, make] = kPartitionKinds[state.range(0)];
  const solvers::PartitionGraph graph = make();
  solvers::Partition partition;
  for (auto _ : state) {
    core::Stopwatch watch(core::Limit{});
    partition = solvers::h_partition(graph, {}, watch);
  }
  state.SetLabel(name);
  state.counters["items"] = graph.items;
  state.counters["groups"] = static_cast<double>(partition.groups.size());
  state.counters["levels"] = partition.levels;
}
BENCHMARK(h_partition)->DenseRange(0, std::size(kPartitionKinds) - 1)->Unit(benchmark::kMillisecond);

}  // namespace
