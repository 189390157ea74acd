// Measures how long it takes to compute tree decompositions of graphs of 20,000 and 200,000 nodes. To run only these
// benchmarks: cairn_bench --benchmark_filter=decomposition
#include <benchmark/benchmark.h>

#include <iterator>

#include "cairn/bench/random_layered.h"
#include "cairn/models/random_graphs.h"
#include "cairn/solvers/decomposition/elimination.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"

namespace {

using namespace cairn;

core::Graph star(core::NodeId nodes) {
  core::GraphBuilder builder("star");
  for (core::NodeId v = 0; v < nodes; ++v) {
    builder.add({});
    if (v > 0) builder.add_input(v, 0);
  }
  return builder.build();
}

struct Kind {
  const char* name;
  core::Graph (*make)(core::NodeId nodes);
};
constexpr Kind kKinds[] = {
    {"training chain", [](core::NodeId n) { return bench::training_chain(n, 2 * n); }},
    {"series-parallel", [](core::NodeId n) { return models::generate_series_parallel(n, 6, {}, 1); }},
    {"star", star},
    {"random layered, 100 wide", [](core::NodeId n) { return bench::random_layered(n, 2 * n); }},
};

template <class Body>
void on_kind(benchmark::State& state, const char* counter, const Body& body) {
  const Kind& kind = kKinds[state.range(0)];
  const core::Graph graph = kind.make(static_cast<core::NodeId>(state.range(1)));
  std::int64_t result = 0;
  for (auto _ : state) result = body(graph);
  state.SetLabel(kind.name);
  state.counters[counter] = static_cast<double>(result);
}

void on_all(benchmark::internal::Benchmark* bench) {
  bench->ArgsProduct({benchmark::CreateDenseRange(0, std::size(kKinds) - 1, 1), {20'000, 200'000}});
  bench->ArgNames({"kind", "nodes"})->Unit(benchmark::kMillisecond);
}

void decomposition_min_fill(benchmark::State& state) {
  on_kind(state, "width", [](const core::Graph& graph) { return solvers::min_fill_decomposition(graph).width; });
}
BENCHMARK(decomposition_min_fill)->Apply(on_all);

void decomposition_min_degree(benchmark::State& state) {
  on_kind(state, "width", [](const core::Graph& graph) {
    const solvers::UndirectedGraph undirected(graph);
    const auto order = solvers::elimination_order(undirected, {.rule = solvers::EliminationRule::min_degree});
    return solvers::decomposition_of(undirected, order).width;
  });
}
BENCHMARK(decomposition_min_degree)->Apply(on_all);

void decomposition_lower_bound(benchmark::State& state) {
  on_kind(state, "bound", [](const core::Graph& graph) { return solvers::treewidth_lower_bound(graph); });
}
BENCHMARK(decomposition_lower_bound)->Apply(on_all);

template <solvers::Balance balance>
void decomposition_separators(benchmark::State& state) {
  const core::Graph graph = kKinds[state.range(0)].make(static_cast<core::NodeId>(state.range(1)));
  const auto decomposition = solvers::min_fill_decomposition(graph);
  std::size_t parts = 0;
  for (auto _ : state) parts = solvers::separator_tree(decomposition, graph, balance).parts.size();
  state.SetLabel(kKinds[state.range(0)].name);
  state.counters["separators"] = static_cast<double>(parts);
}
BENCHMARK(decomposition_separators<solvers::Balance::bags>)->Apply(on_all);
BENCHMARK(decomposition_separators<solvers::Balance::bytes>)->Apply(on_all);

}  // namespace
