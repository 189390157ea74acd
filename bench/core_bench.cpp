// Measures how long it takes to load, evaluate and plan a graph of 20,000 nodes and 40,000 edges, on one core.
#include <benchmark/benchmark.h>

#include "cairn/bench/random_layered.h"
#include "cairn/bench/rate.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/plan.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/reference/reference.h"

namespace {

using namespace cairn;

const core::Graph& large_graph() {
  static const core::Graph graph = bench::random_layered(20'000, 40'000);
  return graph;
}

void evaluate_schedule(benchmark::State& state) {
  const core::Schedule schedule = core::baseline_schedule(large_graph());
  core::Evaluator evaluator(large_graph());
  for (auto _ : state) benchmark::DoNotOptimize(evaluator.evaluate(schedule));
  state.counters["steps/s"] = bench::rate(static_cast<double>(schedule.length()));
}
BENCHMARK(evaluate_schedule)->Unit(benchmark::kMillisecond);

/// Measures the evaluation of a graph with several outputs per node: the large graph, in which every second node has
/// got a second output. Readers with even numbers read this output instead of the first.
void evaluate_several_outputs(benchmark::State& state) {
  core::GraphBuilder builder(large_graph());
  for (core::NodeId v = 0; v < builder.node_count(); ++v) {
    core::Node& node = builder.node(v);
    for (core::OutputRef& input : node.inputs) input.output = input.node % 2 == 0 && v % 2 == 0 ? 1 : 0;
    if (v % 2 == 0) node.outputs = {{.size = node.size}, {.size = node.size / 2}};
  }
  const core::Graph graph = builder.build();
  const core::Schedule schedule = core::baseline_schedule(graph);
  core::Evaluator evaluator(graph);
  for (auto _ : state) benchmark::DoNotOptimize(evaluator.evaluate(schedule));
}
BENCHMARK(evaluate_several_outputs)->Unit(benchmark::kMillisecond);

void evaluate_with_recomputation(benchmark::State& state) {
  // In this schedule, every node runs twice in a row, which gives 40,000 steps.
  core::Schedule schedule;
  for (core::NodeId v = 0; v < large_graph().node_count(); ++v) schedule.steps.insert(schedule.steps.end(), {v, v});
  core::Evaluator evaluator(large_graph());
  for (auto _ : state) benchmark::DoNotOptimize(evaluator.evaluate(schedule));
}
BENCHMARK(evaluate_with_recomputation)->Unit(benchmark::kMillisecond);

/// Measures one edit of a schedule: inserts a recomputation of a step's first input right before the step, computes the
/// peak, and undoes the change. The argument is the number of steps.
void edit_schedule(benchmark::State& state) {
  const auto nodes = static_cast<core::NodeId>(state.range(0));
  const core::Graph graph = bench::random_layered(nodes, 2 * state.range(0));
  core::EditableSchedule edited(graph);
  edited.assign(graph.input_order());
  core::Random random(1);
  for (auto _ : state) {
    const auto o = static_cast<core::NodeId>(random.next() % static_cast<std::uint64_t>(nodes));
    if (graph.inputs(o).empty()) continue;
    const auto again = edited.insert(graph.inputs(o)[0], o);
    benchmark::DoNotOptimize(edited.peak());
    edited.drop(again);
  }
}
BENCHMARK(edit_schedule)->Arg(1000)->Arg(16'000)->Arg(256'000)->Unit(benchmark::kMicrosecond);

void load_graph_json(benchmark::State& state) {
  const std::string text = core::graph_to_json(large_graph());
  for (auto _ : state) benchmark::DoNotOptimize(core::parse_graph(text, "bench"));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}
BENCHMARK(load_graph_json)->Unit(benchmark::kMillisecond);

void plan_baseline(benchmark::State& state) {
  const core::Graph graph = bench::training_chain(static_cast<core::NodeId>(state.range(0)), 2 * state.range(0));
  const core::Schedule schedule = core::baseline_schedule(graph);
  core::Plan plan;
  for (auto _ : state) plan = solvers::plan_memory(graph, schedule, {.alignment = 256});
  state.counters["bytes/bound"] = static_cast<double>(plan.bytes) / static_cast<double>(plan.lower_bound);
}
BENCHMARK(plan_baseline)->Arg(1000)->Arg(4000)->Arg(20'000)->Unit(benchmark::kMillisecond);

}  // namespace
