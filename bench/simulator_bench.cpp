// Measures how many candidates (schedules) per second the simulator evaluates on the host, compared with
// core::Evaluator called in a loop. `bytes/s` counts each byte of the batch and of its outcomes once. `of_copy` is this
// rate divided by the rate that memcpy reaches on one thread. `of_copy` is printed like a rate, but is a ratio. To run
// these benchmarks: cairn_bench --benchmark_filter=simulator
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "cairn/bench/copy_bandwidth.h"
#include "cairn/bench/random_layered.h"
#include "cairn/core/link.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/timeline.h"
#include "cairn/sim/host/lockstep/lockstep.h"
#include "cairn/sim/simulator.h"

namespace {

using namespace cairn;

/// Returns a copy of the graph in which some nodes have additional outputs: every fourth node one, and one node in
/// eight two. Each edge reads a random output of its source.
core::Graph with_several_outputs(const core::Graph& graph) {
  std::mt19937_64 random(3);
  core::GraphBuilder builder("several");
  const auto outputs = [](core::NodeId v) { return 1 + (v % 4 == 0 ? 1 : 0) + (v % 8 == 1 ? 2 : 0); };
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    core::Node node = core::node_of(graph, v);
    const std::int64_t size = node.size;
    for (std::int32_t k = 0; k < outputs(v); ++k) node.outputs.push_back({.size = size / outputs(v)});
    for (core::OutputRef& input : node.inputs) {
      input.output = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(outputs(input.node)));
    }
    builder.add(std::move(node));
  }
  return builder.build();
}

/// Returns a random layered graph of `nodes` nodes with 5.875 edges per node; bench/results/solvers.md has figures for
/// 1,000 nodes. If `several` is set, nodes have 1.5 outputs on average.
const core::Graph& graph_of(std::int64_t nodes, bool several = false) {
  static std::map<std::pair<std::int64_t, bool>, core::Graph> known;
  const auto place = known.find({nodes, several});
  if (place != known.end()) return place->second;
  core::Graph graph = several ? with_several_outputs(graph_of(nodes))
                              : bench::random_layered(static_cast<core::NodeId>(nodes), nodes * 5875 / 1000);
  return known.emplace(std::pair(nodes, several), std::move(graph)).first->second;
}

/// Returns `count` random schedules. Each is a random order in which `again` random nodes are recomputed, each directly
/// before one of its readers.
const sim::ScheduleBatch& batch_of(std::int64_t nodes, std::int64_t count, std::int64_t again) {
  static std::array<std::int64_t, 3> known{};
  static sim::ScheduleBatch batch(0);
  if (known == std::array{nodes, count, again}) return batch;
  const core::Graph& graph = graph_of(nodes);
  batch = sim::ScheduleBatch(graph.node_count());
  std::mt19937_64 random(7);
  for (std::int64_t c = 0; c < count; ++c) {
    const core::Schedule order = sim::generate(graph, {.seed = 1}, c);
    std::vector<std::vector<core::NodeId>> before(static_cast<std::size_t>(nodes));
    for (std::int64_t added = 0; added < again;) {
      const auto reader = random() % static_cast<std::uint64_t>(nodes);
      const auto inputs = graph.inputs(static_cast<core::NodeId>(reader));
      if (inputs.empty()) continue;
      before[reader].push_back(inputs[random() % inputs.size()]);
      ++added;
    }
    core::Schedule schedule;
    for (const core::NodeId v : order.steps) {
      const auto& inserted = before[static_cast<std::size_t>(v)];
      schedule.steps.insert(schedule.steps.end(), inserted.begin(), inserted.end());
      schedule.steps.push_back(v);
    }
    batch.add(schedule);
  }
  known = {nodes, count, again};
  return batch;
}

std::int64_t batch_size(const benchmark::State& state) {
  return std::max<std::int64_t>(256, 4'096'000 / state.range(0));
}

void report(benchmark::State& state, const sim::ScheduleBatch& batch) {
  constexpr std::int64_t kOutcomeBytes = 8 + 8 + 4 + 1;
  bench::report_rate(state, "candidates/s", batch.count(), batch.bytes() + batch.count() * kOutcomeBytes);
}

/// Evaluates candidates by core::Evaluator in a loop. Arguments: number of nodes; recomputations per candidate; 1 for
/// nodes with several outputs.
void simulator_plain_evaluator(benchmark::State& state) {
  const sim::ScheduleBatch& batch = batch_of(state.range(0), batch_size(state), state.range(1));
  std::vector<core::Schedule> schedules;
  for (std::int64_t c = 0; c < batch.count(); ++c) schedules.push_back(batch.schedule(c));
  core::Evaluator evaluator(graph_of(state.range(0), state.range(2) != 0));
  for (auto _ : state) {
    for (const core::Schedule& schedule : schedules) benchmark::DoNotOptimize(evaluator.evaluate(schedule));
  }
  report(state, batch);
}

/// Evaluates a batch of candidates by the simulator. Arguments: number of nodes; recomputations per candidate; threads;
/// 1 for nodes with several outputs.
void simulator_evaluate(benchmark::State& state) {
  const sim::ScheduleBatch& batch = batch_of(state.range(0), batch_size(state), state.range(1));
  const core::Graph& graph = graph_of(state.range(0), state.range(3) != 0);
  const auto simulator = sim::host_simulator(graph, static_cast<int>(state.range(2)));
  sim::Outcomes outcomes;
  for (auto _ : state) simulator->evaluate(batch, outcomes);
  report(state, batch);
}

/// A graph with a link between device and host, and a batch of random orders with up to `transfers` evicts each, whose
/// copies use this link.
struct MovedBatch {
  MovedBatch(std::int64_t nodes, std::int64_t transfers)
      : graph(graph_of(nodes).with_host_memory(core::HostMemory{.link = core::parse_link("25GB/s,1us")})),
        batch(sim::host_simulator(graph, 1)->generate({.seed = 1, .transfers = static_cast<std::int32_t>(transfers)}, 0,
                                                      1024)) {}
  core::Graph graph;
  sim::ScheduleBatch batch;
};

/// Evaluates candidates with transfers by core::Evaluator in a loop, and computes the makespan of each. Arguments:
/// number of nodes; largest number of evicts of a candidate.
void simulator_plain_transfers(benchmark::State& state) {
  const MovedBatch moved(state.range(0), state.range(1));
  std::vector<core::Schedule> schedules;
  for (std::int64_t c = 0; c < moved.batch.count(); ++c) schedules.push_back(moved.batch.schedule(c));
  core::Evaluator evaluator(moved.graph);
  for (auto _ : state) {
    for (const core::Schedule& schedule : schedules) {
      benchmark::DoNotOptimize(evaluator.evaluate(schedule));
      benchmark::DoNotOptimize(core::makespan(moved.graph, schedule, moved.graph.host_memory()->link));
    }
  }
  report(state, moved.batch);
}

/// Evaluates the candidates of simulator_plain_transfers() by the simulator. Arguments: number of nodes; largest number
/// of evicts of a candidate; threads.
void simulator_transfers(benchmark::State& state) {
  const MovedBatch moved(state.range(0), state.range(1));
  const auto simulator = sim::host_simulator(moved.graph, static_cast<int>(state.range(2)));
  sim::Outcomes outcomes;
  for (auto _ : state) simulator->evaluate(moved.batch, outcomes);
  report(state, moved.batch);
}

/// Computes the memory profiles of a batch of candidates. Arguments: recomputations per candidate; 1 for nodes with
/// several outputs.
void simulator_profiles(benchmark::State& state) {
  const sim::ScheduleBatch& batch = batch_of(1000, 1024, state.range(0));
  const auto simulator = sim::host_simulator(graph_of(1000, state.range(1) != 0), 1);
  std::int64_t entries = 0;
  for (auto _ : state) entries = static_cast<std::int64_t>(simulator->profiles(batch).value.size());
  bench::report_rate(state, "candidates/s", batch.count(), batch.bytes() + entries * 8);
}

/// Draws random candidates. Arguments: number of nodes; sim::Generator::moves; threads; 1 for nodes with several
/// outputs.
void simulator_draw(benchmark::State& state) {
  constexpr std::int64_t kCount = 1024;
  const sim::Generator generator{1, static_cast<std::int32_t>(state.range(1))};
  const core::Graph& graph = graph_of(state.range(0), state.range(3) != 0);
  const auto simulator = sim::host_simulator(graph, static_cast<int>(state.range(2)));
  std::int64_t first = 0, bytes = 0;
  for (auto _ : state) {
    bytes = simulator->generate(generator, first, kCount).bytes();
    first += kCount;
  }
  bench::report_rate(state, "candidates/s", kCount, bytes);
}
void simulator_draw_and_evaluate(benchmark::State& state) {
  constexpr std::int64_t kCount = 1024;
  const sim::Generator generator{1, static_cast<std::int32_t>(state.range(1))};
  const core::Graph& graph = graph_of(state.range(0), state.range(3) != 0);
  const auto simulator = sim::host_simulator(graph, static_cast<int>(state.range(2)));
  sim::Outcomes outcomes;
  std::int64_t first = 0;
  for (auto _ : state) {
    simulator->evaluate(generator, first, kCount, outcomes);
    first += kCount;
  }
  bench::report_rate(state, "candidates/s", kCount, kCount * 21);
}
/// Draws and evaluates candidates with the code for one family of processors. Arguments: number of nodes; bytes of a
/// vector register of the family, where 0 stands for the code that any processor can run.
void simulator_family(benchmark::State& state) {
  const sim::device::Tables<std::uint16_t> tables(graph_of(state.range(0)));
  std::vector<sim::ProcessorFamily> families{sim::any_processor()};
  if (state.range(1) > 0) {
    families.assign(sim::families().begin(), sim::families().end() - 1);
    std::erase_if(families, [&](const sim::ProcessorFamily& family) { return family.vector_bytes != state.range(1); });
  }
  if (families.empty()) return state.SkipWithError("this processor does not belong to the family");
  const auto drawn = families.front().draw_orders16(tables.view());
  std::vector<sim::device::Outcome> outcomes(static_cast<std::size_t>(drawn->lanes()));
  std::int64_t first = 0;
  for (auto _ : state) {
    drawn->draw(1, first);
    drawn->evaluate(drawn->lanes(), outcomes.data());
    first += drawn->lanes();
  }
  bench::report_rate(state, "candidates/s", drawn->lanes(), drawn->lanes() * 21);
}
void simulator_tally(benchmark::State& state) {
  sim::Outcomes outcomes;
  const core::Graph& graph = graph_of(1000);
  sim::host_simulator(graph)->evaluate(sim::Generator{1, 200}, 0, 1 << 14, outcomes);
  sim::Tally tally(sim::tally_options(graph));
  std::int64_t first = 0;
  for (auto _ : state) {
    tally.add(first, outcomes);
    first += outcomes.count();
  }
  bench::report_rate(state, "candidates/s", outcomes.count(), outcomes.count() * 21);
}

// Wall time is measured instead of the CPU time of the calling thread, because the simulator uses further threads.
// core::Evaluator gets the same candidates as the simulator, so that the two rates can be compared. The benchmarks also
// run on the graph with 1.5 outputs per node.
#define CAIRN_PLAIN(nodes, again, several) \
  BENCHMARK(simulator_plain_evaluator)->Args({nodes, again, several})->UseRealTime()
#define CAIRN_BATCH(nodes, again, threads, several) \
  BENCHMARK(simulator_evaluate)->Args({nodes, again, threads, several})->UseRealTime()
CAIRN_PLAIN(1000, 0, 0);
CAIRN_PLAIN(1000, 0, 1);
CAIRN_BATCH(1000, 0, 1, 0);
CAIRN_BATCH(1000, 0, 1, 1);
CAIRN_BATCH(1000, 0, 2, 0);
CAIRN_PLAIN(1000, 500, 0);
CAIRN_PLAIN(1000, 500, 1);
CAIRN_BATCH(1000, 500, 1, 0);
CAIRN_BATCH(1000, 500, 1, 1);
CAIRN_BATCH(1000, 500, 2, 0);
CAIRN_PLAIN(10'000, 0, 0);
CAIRN_BATCH(10'000, 0, 1, 0);
CAIRN_BATCH(10'000, 0, 1, 1);
CAIRN_PLAIN(100'000, 0, 0);
CAIRN_BATCH(100'000, 0, 1, 0);
BENCHMARK(simulator_plain_transfers)->Args({1000, 20})->Args({1000, 200})->Args({10'000, 200})->UseRealTime();
BENCHMARK(simulator_transfers)->Args({1000, 20, 1})->Args({1000, 200, 1})->Args({10'000, 200, 1})->UseRealTime();
BENCHMARK(simulator_profiles)->Args({0, 0})->Args({0, 1})->Args({500, 0})->Args({500, 1})->UseRealTime();
BENCHMARK(simulator_draw)->Args({250, 0, 1, 0})->Args({1000, 0, 1, 0})->Args({1000, 500, 1, 0})->UseRealTime();
BENCHMARK(simulator_draw_and_evaluate)
    ->Args({250, 0, 1, 0})
    ->Args({1000, 0, 1, 0})
    ->Args({1000, 0, 1, 1})
    ->Args({1000, 0, 2, 0})
    ->Args({1000, 500, 1, 0})
    ->Args({1000, 500, 1, 1})
    ->UseRealTime();
BENCHMARK(simulator_family)->ArgsProduct({{250, 1000, 10'000}, {0, 32, 64}})->UseRealTime();
BENCHMARK(simulator_tally)->UseRealTime();

}  // namespace
