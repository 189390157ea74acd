// Measures how many moves per second a local search can make. A move edits a schedule, computes the peak and undoes the
// edit. The peak is computed either incrementally (core::EditableSchedule) or by evaluating the whole schedule. The
// graphs are random layered graphs; the argument of a benchmark is the number of nodes.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"
#include "cairn/models/random_graphs.h"
#include "cairn/solvers/remat/anneal/annealer.h"
#include "cairn/solvers/remat/anneal/population.h"

namespace {

using namespace cairn;

struct Instance {
  core::Graph graph;
  core::Schedule schedule;
};

/// Returns a random layered graph, and a schedule of this graph in which one step in twenty is preceded by a
/// recomputation of one of its inputs.
Instance instance(benchmark::State& state) {
  const auto nodes = static_cast<core::NodeId>(state.range(0));
  const double width = nodes > 1000 ? 0.19 : 0.31;
  Instance instance{models::generate_layered({.nodes = nodes, .width = width, .seed = 1}), {}};
  core::Random random(1);
  for (const core::NodeId v : instance.graph.input_order()) {
    const auto inputs = instance.graph.inputs(v);
    if (!inputs.empty() && random.uniform() < 0.05)
      instance.schedule.steps.push_back(inputs[random.next() % inputs.size()]);
    instance.schedule.steps.push_back(v);
  }
  state.counters["steps"] = static_cast<double>(instance.schedule.length());
  return instance;
}

void count_moves(benchmark::State& state, std::int64_t moves) {
  state.counters["moves/s"] = benchmark::Counter(static_cast<double>(moves), benchmark::Counter::kIsRate);
}

/// Measures moves with core::EditableSchedule. Each move chooses a random step, inserts a recomputation of a random
/// input of this step before it, computes the peak, and undoes the change.
void moves_incremental(benchmark::State& state) {
  const Instance instance = ::instance(state);
  core::EditableSchedule schedule(instance.graph);
  schedule.assign(instance.schedule.steps);
  const auto limit = static_cast<std::uint64_t>(schedule.occurrence_limit());
  core::Random random(1);
  std::int64_t moves = 0;
  for (auto _ : state) {
    const auto o = static_cast<core::EditableSchedule::Occurrence>(random.next() % limit);
    if (o == schedule.end() || schedule.place(o) < 0) continue;
    const auto inputs = instance.graph.inputs(schedule.node(o));
    if (inputs.empty()) continue;
    const auto again = schedule.insert(inputs[random.next() % inputs.size()], o);
    benchmark::DoNotOptimize(schedule.peak());
    schedule.drop(again);
    ++moves;
  }
  count_moves(state, moves);
}
BENCHMARK(moves_incremental)->Arg(1000)->Arg(10'000)->Unit(benchmark::kMicrosecond);

void moves_from_scratch(benchmark::State& state) {
  const Instance instance = ::instance(state);
  core::Evaluator evaluator(instance.graph);
  core::Schedule schedule = instance.schedule;
  core::Random random(1);
  std::int64_t moves = 0;
  for (auto _ : state) {
    const auto i = static_cast<std::ptrdiff_t>(random.next() % schedule.steps.size());
    const auto inputs = instance.graph.inputs(schedule.steps[static_cast<std::size_t>(i)]);
    if (inputs.empty()) continue;
    schedule.steps.insert(schedule.steps.begin() + i, inputs[random.next() % inputs.size()]);
    benchmark::DoNotOptimize(evaluator.evaluate(schedule));
    schedule.steps.erase(schedule.steps.begin() + i);
    ++moves;
  }
  count_moves(state, moves);
}
BENCHMARK(moves_from_scratch)->Arg(1000)->Arg(10'000)->Unit(benchmark::kMicrosecond);

/// Measures moves of simulated annealing at a low temperature. A move consists of several edits, and is usually undone.
void moves_of_annealing(benchmark::State& state) {
  const Instance instance = ::instance(state);
  solvers::Annealer annealer(instance.graph, {}, 1);
  const std::int64_t budget = core::evaluate(instance.graph, instance.schedule).peak * 9 / 10;
  std::int64_t moves = 0;
  for (auto _ : state) {
    constexpr std::int64_t kMoves = 100'000;
    core::Stopwatch watch(core::Limit{});
    annealer.start(instance.schedule.steps, budget);
    annealer.begin_run(kMoves, 0.1, 0.02);
    annealer.advance(watch);
    moves += kMoves;
  }
  count_moves(state, moves);
}
BENCHMARK(moves_of_annealing)->Arg(1000)->Arg(10'000)->Unit(benchmark::kMillisecond);

/// Measures the search that improves a population of schedules: how many candidates per second it makes and evaluates.
/// The second argument is the number of threads.
void population(benchmark::State& state) {
  const Instance instance = ::instance(state);
  const auto threads = static_cast<int>(state.range(1));
  const auto simulator = sim::host_simulator(instance.graph, threads);
  const std::vector<core::Schedule> starts{instance.schedule};
  const std::int64_t budget = core::evaluate(instance.graph, instance.schedule).peak * 9 / 10;
  double candidates = 0;
  for (auto _ : state) {
    core::Stopwatch watch(core::Limit{});
    const solvers::PopulationOptions options{.generations = 20, .scope = {}, .threads = threads};
    benchmark::DoNotOptimize(solvers::evolve(instance.graph, starts, budget, options, *simulator, watch));
    candidates += static_cast<double>(watch.work()) / static_cast<double>(instance.schedule.length());
  }
  state.counters["candidates/s"] = benchmark::Counter(candidates, benchmark::Counter::kIsRate);
}
BENCHMARK(population)->Args({1000, 1})->Args({1000, 2})->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
