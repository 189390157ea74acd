// Compares the search for transfers with the evaluator. Other tests compare the evaluator with the definitions.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cairn/core/formats/files.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/timeline.h"
#include "cairn/solvers/offload/internal/construct.h"
#include "cairn/solvers/offload/internal/improve.h"
#include "cairn/solvers/offload/internal/priced_graph.h"
#include "cairn/solvers/offload/internal/state.h"
#include "cairn/solvers/offload/internal/steps.h"
#include "cairn/solvers/offload/support/solve.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/schedules.h"

namespace cairn::solvers::offload_property_test {
namespace {

using core::Evaluation;
using core::Graph;
using core::Schedule;
using offloading::Limits;
using offloading::PricedGraph;
using offloading::State;
using tests::for_each_schedule;
using tests::Random;

core::Link random_link(Random& random) {
  return {random.between(1, 16) * 1'000'000'000, random.chance(50) ? 0 : random.below(4), random.chance(70)};
}

Limits random_limits(Random& random, std::int64_t peak) {
  Limits limits{random_link(random), random.between(peak / 2, peak)};
  if (random.chance(30)) limits.host_budget = random.below(peak + 1);
  return limits;
}

/// Checks that the state has the same memory and the same times as the evaluator and timeline() compute for its
/// schedule.
void require_measured(const Graph& graph, State& state) {
  const Schedule schedule = state.schedule();
  const Evaluation evaluation = core::evaluate(graph, schedule);
  INFO(core::describe(graph, evaluation.defect));
  REQUIRE(evaluation.valid());
  const std::vector<std::int64_t> profile = core::Evaluator(graph).profile(schedule);
  const std::vector<std::int64_t> host = core::host_profile(graph, schedule);
  std::int64_t excess = 0;
  for (std::size_t m = 0; m + 1 < profile.size(); ++m) {
    REQUIRE(state.bytes_at(static_cast<std::int64_t>(m)) == profile[m + 1]);
    excess += std::max<std::int64_t>(0, profile[m + 1] - state.limits().budget);
  }
  for (std::size_t i = 0; i < host.size(); ++i) {
    REQUIRE(state.host_at(static_cast<std::int32_t>(i)) == host[i]);
    excess += std::max<std::int64_t>(0, host[i] - state.limits().host_budget);
  }
  REQUIRE(state.excess() == excess);
  REQUIRE(state.makespan() == core::makespan(graph, schedule, state.limits().link));
}

/// Makes up to `count` random changes of transfers. Returns the saved states from before each change, in order.
std::vector<offloading::Saved> change(Random& random, State& state, int count) {
  std::vector<offloading::Saved> saved;
  for (int k = 0; k < count; ++k) {
    const auto g = static_cast<std::int32_t>(random.below(std::ssize(state.gaps())));
    const offloading::Gap gap = state.gap(g);
    saved.push_back(state.save(gap.occurrence));
    const std::int64_t what = random.below(3);
    if (what == 0) state.set_fetch(g, -1);
    if (what == 1) state.set_fetch(g, static_cast<std::int32_t>(random.between(gap.begin, gap.end)));
    if (what == 2)
      state.set_evict(gap.occurrence, static_cast<std::int32_t>(random.below(state.length())),
                      static_cast<std::int32_t>(random.below(state.length() + 1)));
  }
  return saved;
}

}  // namespace

TEST_CASE("offload: a state counts bytes and times as the evaluator does, and undoes changes") {
  std::int64_t changed = 0;
  for_each_schedule(600, [&](Random& random, const Graph& graph, const Schedule& schedule) {
    State state(graph, schedule.steps, random_limits(random, core::evaluate(graph, schedule).peak));
    require_measured(graph, state);
    if (state.gaps().empty()) return;
    change(random, state, 6);
    const Schedule before = state.schedule();
    require_measured(graph, state);
    const std::vector<offloading::Saved> saved = change(random, state, 4);
    require_measured(graph, state);
    changed += state.schedule() != before ? 1 : 0;
    for (auto at = saved.rbegin(); at != saved.rend(); ++at) state.restore(*at);
    REQUIRE(state.schedule() == before);
    require_measured(graph, state);
    State other(graph, schedule.steps, state.limits());
    other.assign(before.transfers);
    REQUIRE(other.schedule() == before);
  });
  REQUIRE(changed > 100);
}

TEST_CASE("offload: the construction and the annealing keep to the budgets and never make a schedule worse") {
  std::int64_t fitted = 0, improved = 0;
  for_each_schedule(600, [&](Random& random, const Graph& graph, const Schedule& schedule) {
    State state(graph, schedule.steps, random_limits(random, core::evaluate(graph, schedule).peak));
    core::Stopwatch watch({.work = 40'000});
    const bool fits = offloading::construct(state, watch);
    REQUIRE(fits == state.fits());
    require_measured(graph, state);
    if (!fits) return;
    ++fitted;
    const std::int64_t constructed = state.makespan();
    offloading::relax(state, watch);
    require_measured(graph, state);
    REQUIRE(state.fits());
    const std::int64_t relaxed = state.makespan();
    REQUIRE(relaxed <= constructed);
    core::Random numbers(1);
    offloading::improve(state, watch, numbers, state.compute());
    require_measured(graph, state);
    REQUIRE(state.fits());
    REQUIRE(state.makespan() <= relaxed);
    improved += state.makespan() < relaxed ? 1 : 0;
  });
  REQUIRE(fitted > 150);
  REQUIRE(improved > 5);
}

TEST_CASE("offload: every change of the steps leaves a valid schedule") {
  std::int64_t changed = 0, kept = 0;
  for_each_schedule(600, [&](Random& random, const Graph& graph, const Schedule& schedule) {
    State state(graph, schedule.steps, random_limits(random, core::evaluate(graph, schedule).peak));
    if (!state.gaps().empty()) change(random, state, 5);
    core::Random numbers(static_cast<std::uint64_t>(random.below(1000)));
    for (int k = 0; k < 4; ++k) {
      const auto next = offloading::change_steps(graph, state.schedule(), numbers, {});
      if (!next) continue;
      ++changed;
      REQUIRE(core::evaluate(graph, Schedule{next->steps}).valid());
      State after(graph, next->steps, state.limits());
      after.assign(next->transfers);
      require_measured(graph, after);
      kept += after.schedule().transfers.empty() ? 0 : 1;
    }
  });
  REQUIRE(changed > 200);
  REQUIRE(kept > 50);
}

TEST_CASE("offload: a schedule of the graph with priced copies becomes a valid one with transfers") {
  std::int64_t split = 0, fetched = 0;
  for_each_schedule(600, [&](Random& random, const Graph& graph, const Schedule&) {
    const PricedGraph priced(graph, random_link(random), 0.2 * static_cast<double>(random.below(3)));
    split += priced.split_nodes();
    const Schedule schedule = tests::random_schedule(random, priced.graph());
    const Schedule original = priced.original(schedule);
    const Evaluation evaluation = core::evaluate(graph, original);
    INFO(core::describe(graph, evaluation.defect));
    REQUIRE(evaluation.valid());
    fetched += std::ssize(original.transfers.fetches);
  });
  REQUIRE(split > 200);
  REQUIRE(fetched > 50);
}

TEST_CASE("offload: with transfers an answer costs at most what recomputation alone costs") {
  std::int64_t cheaper = 0, only = 0;
  for_each_schedule(240, [&](Random& random, const Graph& graph, const Schedule& schedule) {
    const std::int64_t peak = core::evaluate(graph, schedule).peak, least = core::peak_lower_bound(graph);
    Limits limits = random_limits(random, peak);
    if (random.chance(50)) limits.budget = random.between(std::min(least, peak), peak);
    const SolverInfo& solver = find_solver("auto");
    const core::Limit limit{.work = 60'000};
    const Solution alone = solver.solve(graph, {.budget = limits.budget, .limit = limit});
    SolveOptions search;
    const bool found = alone.status == Status::optimal || alone.status == Status::feasible;
    if (found) search.start = &alone.schedule;
    const OffloadOptions options{
        .link = limits.link, .budget = limits.budget, .host_budget = limits.host_budget, .limit = limit};
    const OffloadSolution both = solve_with_transfers(graph, solver, search, options);
    // If a graph has a link, its costs are makespans. The search must give the same result for it.
    const Graph linked = graph.with_host_memory(core::HostMemory{limits.link, limits.host_budget});
    const OffloadSolution same = solve_with_transfers(linked, solver, search, options);
    REQUIRE(same.schedule == both.schedule);
    REQUIRE(same.cost == both.cost);
    if (both.fits) {
      const Evaluation evaluation = core::evaluate(graph, both.schedule);
      REQUIRE(evaluation.valid());
      REQUIRE(evaluation.peak <= limits.budget);
      REQUIRE(core::host_peak(graph, both.schedule) <= limits.host_budget);
    }
    if (found) {
      REQUIRE(both.fits);
      REQUIRE(both.makespan <= alone.cost);
      cheaper += both.makespan < alone.cost ? 1 : 0;
    } else {
      only += both.fits ? 1 : 0;
    }
  });
  REQUIRE(cheaper > 3);
  REQUIRE(only > 0);
}

TEST_CASE("offload: outputs that stay are never moved, and files and copies of the graph say which they are") {
  std::int64_t moved = 0, would = 0;
  for_each_schedule(200, [&](Random& random, const Graph& plain, const Schedule& schedule) {
    core::GraphBuilder builder(plain);
    for (core::NodeId v = 0; v < builder.node_count(); ++v) {
      core::Node& node = builder.node(v);
      if (node.outputs.empty()) node.outputs.push_back({node.size, node.keep, node.inplace, ""});
      for (core::Output& output : node.outputs) output.stays = random.chance(40);
    }
    const Graph graph = builder.build();
    const Graph read = core::parse_graph(core::graph_to_json(graph), "g.json");
    const Graph copied = core::GraphBuilder(graph).build();
    for (core::ValueId x = 0; x < graph.value_count(); ++x) {
      REQUIRE(read.value_stays(x) == graph.value_stays(x));
      REQUIRE(copied.value_stays(x) == graph.value_stays(x));
    }
    REQUIRE(read.fingerprint() == graph.fingerprint());
    const Limits limits = random_limits(random, core::evaluate(graph, schedule).peak);
    const OffloadOptions options{
        .link = limits.link, .budget = limits.budget, .host_budget = limits.host_budget, .limit = {.work = 30'000}};
    const OffloadSolution found = solve_with_transfers(graph, find_solver("auto"), {}, options);
    for (const core::Evict& evict : found.schedule.transfers.evicts) REQUIRE_FALSE(graph.value_stays(evict.value));
    moved += std::ssize(found.schedule.transfers.evicts);
    const OffloadSolution free = solve_with_transfers(plain, find_solver("auto"), {}, options);
    for (const core::Evict& evict : free.schedule.transfers.evicts) would += graph.value_stays(evict.value) ? 1 : 0;
  });
  REQUIRE(moved > 10);
  REQUIRE(would > 10);
}

}  // namespace cairn::solvers::offload_property_test
