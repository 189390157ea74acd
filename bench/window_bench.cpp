// Measures the exact re-optimisation of windows of a schedule, i.e. of short ranges of steps: how many windows are
// solved per second, and by how much a thousand windows lower the cost. The graphs are random layered graphs. The
// schedules run the nodes in the graph's input order, but free some values early and recompute them, so that the peak
// is a given percentage of the baseline's.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/models/random_graphs.h"
#include "cairn/solvers/remat/exact/window.h"
#include "cairn/solvers/remat/repair/evict.h"
#include "cairn/solvers/remat/repair/retain.h"

namespace {

using namespace cairn;

void a_thousand_windows(benchmark::State& state) {
  const auto nodes = static_cast<core::NodeId>(state.range(0));
  const core::Graph graph = models::generate_layered({.nodes = nodes, .width = 0.35});
  const core::Schedule baseline = core::baseline_schedule(graph);
  const core::Evaluation all = core::evaluate(graph, baseline);
  const std::int64_t budget = all.peak * state.range(1) / 100;
  core::EditableSchedule editable(graph);
  editable.assign(baseline.steps);
  core::Stopwatch watch({});
  if (!solvers::evict_until_it_fits(graph, editable, budget, 0, watch)) state.SkipWithError("does not fit");
  solvers::retain_where_it_fits(graph, editable, budget);
  const std::vector<core::NodeId> start = editable.steps();
  std::vector<core::NodeId> steps;
  std::int64_t states = 0;
  for (auto _ : state) {
    steps = start;
    solvers::WindowSearch windows(graph, solvers::kAnySchedule, budget, 1, std::int64_t{1} << 30);
    for (int i = 0; i < 1000; ++i) windows.improve(steps, watch);
    states += windows.states();
  }
  const auto per_cent = [&](const std::vector<core::NodeId>& of) {
    return 100.0 * static_cast<double>(core::evaluate(graph, {of}).cost - all.cost) / static_cast<double>(all.cost);
  };
  state.SetItemsProcessed(state.iterations() * 1000);  // an iteration solves 1000 windows
  state.counters["states/s"] = benchmark::Counter(static_cast<double>(states), benchmark::Counter::kIsRate);
  state.counters["cost before, %"] = per_cent(start);
  state.counters["cost after, %"] = per_cent(steps);
}
BENCHMARK(a_thousand_windows)->Args({100, 90})->Args({250, 90})->Args({1000, 90})->Unit(benchmark::kMillisecond);

}  // namespace
