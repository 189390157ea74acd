#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "cairn/bench/random_layered.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/plan/planner.h"

namespace {

using namespace cairn;

/// Returns a training graph in the shape of a U-Net: a forward pass, then a backward pass. Sizes of outputs halve
/// several times towards the middle of the forward pass, and double again after it. In the second half of the forward
/// pass, every eighth node also reads the node at the mirrored position in the first half. Every backward node reads
/// the forward node that belongs to it. A quarter of the nodes have scratch.
core::Graph nested(core::NodeId nodes) {
  constexpr core::NodeId kLevels = 8;
  std::mt19937_64 random(1);
  const core::NodeId half = nodes / 2;
  core::GraphBuilder builder("nested");
  for (core::NodeId v = 0; v < nodes; ++v) {
    const core::NodeId mirror = v < half ? v : nodes - 1 - v;
    core::Node node;
    node.size = static_cast<std::int64_t>(1 + random() % 16) << (20 - std::min(mirror, half - mirror) * kLevels / half);
    node.cost = 1;
    if (random() % 4 == 0) node.scratch = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(node.size));
    builder.add(std::move(node));
  }
  for (core::NodeId v = 1; v < nodes; ++v) {
    builder.add_input(v, v - 1);
    const core::NodeId mirror = v < half ? half - 1 - v : nodes - 1 - v;
    if (mirror < v - 1 && (v >= half || v % 8 == 0)) builder.add_input(v, mirror);
  }
  return builder.build();
}

solvers::PlanProblem problem_of(const core::Graph& graph) {
  return solvers::plan_problem(graph, core::baseline_schedule(graph));
}

solvers::PlanProblem chain_problem(core::NodeId nodes) {
  return problem_of(bench::training_chain(nodes, std::int64_t{2} * nodes));
}
solvers::PlanProblem nested_problem(core::NodeId nodes) { return problem_of(nested(nodes)); }
solvers::PlanProblem layered_problem(core::NodeId nodes) {
  return problem_of(bench::random_layered(nodes, std::int64_t{3} * nodes));
}

void sizes(benchmark::internal::Benchmark* bench) { bench->Arg(1000)->Arg(10'000)->Arg(100'000); }

/// Measures greedy_plan() with a work limit of 0, with which it makes only its first plan. The counter
/// `above_bound_pct` is the percentage by which the height of the plan exceeds the lower bound.
void plan_once(benchmark::State& state, solvers::PlanProblem (*make)(core::NodeId)) {
  const solvers::PlanProblem problem = make(static_cast<core::NodeId>(state.range(0)));
  solvers::PlanSolution solution;
  for (auto _ : state) solution = solvers::greedy_plan(problem, {.limit = {.work = 0}});
  const auto bound = static_cast<double>(solution.lower_bound);
  state.counters["above_bound_pct"] = 100 * (static_cast<double>(solution.plan.bytes) / bound - 1);
  state.counters["buffers"] = static_cast<double>(problem.buffers.size());
}
BENCHMARK_CAPTURE(plan_once, chain, chain_problem)->Apply(sizes)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan_once, nested, nested_problem)->Apply(sizes)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan_once, layered, layered_problem)->Apply(sizes)->Unit(benchmark::kMillisecond);

}  // namespace
