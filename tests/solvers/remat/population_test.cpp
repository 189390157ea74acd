// Tests the search with a population of schedules. Its schedules must be valid, never worse than those with which it
// starts, and the same on every backend.
#include "cairn/solvers/remat/anneal/population.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/sim/device/machine_simulator.h"
#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/remat/exact/exact_remat.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/support/fiber_machine.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::solvers::population_test {
namespace {

using core::Graph;
using core::Schedule;
using tests::Random;
namespace reference = core::reference;

/// The simulator for GPUs, which a FiberMachine runs on the CPU.
class FiberSimulator : public sim::device::MachineSimulator<tests::FiberMachine, std::uint16_t> {
 public:
  using sim::device::MachineSimulator<tests::FiberMachine, std::uint16_t>::MachineSimulator;
  std::string backend() const override { return "test"; }
  std::string device() const override { return "test"; }
};

/// A simulator whose device fails after four batches.
class FailingSimulator : public FiberSimulator {
 public:
  using FiberSimulator::FiberSimulator;
  void evaluate(const sim::ScheduleBatch& batch, sim::Outcomes& outcomes) override {
    if (--left_ < 0) throw core::DeviceError("lost");
    FiberSimulator::evaluate(batch, outcomes);
  }
  using FiberSimulator::evaluate;

 private:
  int left_ = 4;
};

bool same(const std::vector<Individual>& a, const std::vector<Individual>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Individual& x, const Individual& y) {
    return x.schedule == y.schedule && x.peak == y.peak && x.cost == y.cost;
  });
}

std::vector<Individual> evolved(const Graph& graph, const std::vector<Schedule>& starts, std::int64_t budget,
                                const PopulationOptions& options, sim::Simulator& simulator,
                                const core::Limit& limit = {}) {
  core::Stopwatch watch(limit);
  return evolve(graph, starts, budget, options, simulator, watch);
}

std::vector<Individual> evolved(const Graph& graph, const std::vector<Schedule>& starts, std::int64_t budget,
                                const PopulationOptions& options) {
  return evolved(graph, starts, budget, options, *sim::host_simulator(graph, 1));
}

auto key_of(std::int64_t peak, std::int64_t cost, std::int64_t budget) {
  return std::tuple(std::max<std::int64_t>(0, peak - budget), cost, peak);
}

TEST_CASE("what a population returns is valid, within the scope, and no worse than its starts") {
  const std::vector<Scope> scopes{kAnySchedule,         {OrderRule::input, 0}, {OrderRule::stages, 0},
                                  {OrderRule::free, 2}, {OrderRule::input, 2}, kWithoutRecomputation};
  Random random(311);
  for (std::uint64_t round = 0; round < 1500; ++round) {
    INFO("round " << round);
    const Graph graph = tests::random_graph(random, tests::any_graph(round));
    PopulationOptions options{.generations = 12, .candidates = 24, .seed = round, .threads = 1};
    options.scope = random.pick(scopes);
    std::vector<Schedule> starts{core::baseline_schedule(graph)};
    for (int i = 0; i < 2; ++i) {
      const Schedule schedule = tests::random_schedule(random, graph);
      if (options.scope.contains(graph, schedule)) starts.push_back(schedule);
    }
    const std::int64_t budget = tests::any_budget(random, graph);
    const std::vector<Individual> best = evolved(graph, starts, budget, options);
    REQUIRE(best.size() == starts.size());
    for (const Individual& one : best) {
      tests::require_measured(graph, one);
      REQUIRE(options.scope.contains(graph, one.schedule));
    }
    std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>> before, after;
    for (const Schedule& start : starts)
      before.push_back(key_of(reference::peak(graph, start), reference::cost(graph, start), budget));
    for (const Individual& one : best) after.push_back(key_of(one.peak, one.cost, budget));
    REQUIRE(std::is_sorted(after.begin(), after.end()));
    std::sort(before.begin(), before.end());
    for (std::size_t i = 0; i < after.size(); ++i) REQUIRE(after[i] <= before[i]);
  }
}

TEST_CASE("a population is the same on every backend, for any number of threads, in every run") {
  Random random(312);
  for (std::uint64_t round = 0; round < 40; ++round) {
    INFO("round " << round);
    const Graph graph = tests::random_graph(random, tests::any_graph(round, {.min_nodes = 8, .max_nodes = 30}));
    const std::vector<Schedule> starts{core::baseline_schedule(graph), tests::random_schedule(random, graph)};
    const std::int64_t budget = tests::any_budget(random, graph);
    PopulationOptions options{.generations = 8, .candidates = 32, .seed = round, .threads = 1};
    const std::vector<Individual> once = evolved(graph, starts, budget, options);
    REQUIRE(same(evolved(graph, starts, budget, options), once));
    for (const int threads : {2, 5}) {
      options.threads = threads;
      REQUIRE(same(evolved(graph, starts, budget, options, *sim::host_simulator(graph, threads)), once));
    }
    if (round % 8 != 0) continue;
    options.threads = 2;
    tests::FiberMachine fibers;
    FiberSimulator simulator(fibers, graph);
    REQUIRE(same(evolved(graph, starts, budget, options, simulator), once));
    FailingSimulator failing(fibers, graph);
    REQUIRE(same(evolved(graph, starts, budget, options, failing), once));
  }
}

TEST_CASE("a population finds most optima of small graphs") {
  Random random(313);
  int optima = 0, met = 0;
  for (std::uint64_t round = 0; round < 150; ++round) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 6, .max_nodes = 12});
    SolveOptions exact{.budget = tests::any_budget(random, graph)};
    const Solution solution = exact_remat(graph, exact);
    if (solution.status != Status::optimal) continue;
    ++optima;
    const std::vector<Schedule> starts{core::baseline_schedule(graph)};
    const auto best = evolved(graph, starts, *exact.budget, {.generations = 60, .candidates = 64, .seed = round});
    met += best.front().peak <= *exact.budget && best.front().cost == solution.cost;
    if (best.front().peak <= *exact.budget) REQUIRE(best.front().cost >= solution.cost);
  }
  CHECK(optima > 50);
  CHECK(met > optima * 9 / 10);
}

TEST_CASE("a population keeps to its limits and is harmless where there is nothing to do") {
  Random random(314);
  const Graph graph = tests::random_graph(random, {.min_nodes = 12, .max_nodes = 12});
  const std::vector<Schedule> starts{core::baseline_schedule(graph)};
  CHECK(evolved(graph, {}, 1, {}).empty());
  const auto simulator = sim::host_simulator(graph, 1);
  core::Stopwatch none(core::Limit{.work = 0});
  CHECK(evolve(graph, starts, 0, {}, *simulator, none).front().schedule == starts[0]);
  core::Stopwatch some(core::Limit{.work = 5000});
  evolve(graph, starts, 0, {.candidates = 16}, *simulator, some);
  CHECK(some.work() > 5000);
  CHECK(some.work() < 6000);
}

TEST_CASE("what a population offers is the same under a work limit, whoever evaluates it, and often fits") {
  Random random(315);
  int tight = 0, fits = 0;
  for (std::uint64_t round = 0; round < 200; ++round) {
    INFO("round " << round);
    const Graph graph = tests::random_graph(random, tests::any_graph(round, {.max_nodes = 20}));
    const std::vector<Scope> scopes{kAnySchedule, {OrderRule::input, 0}, {OrderRule::free, 2}};
    SolveOptions options{.budget = tests::any_budget(random, graph), .seed = round};
    options.scope = random.pick(scopes);
    options.limit.work = 400'000;
    const auto offered = [&](sim::Simulator* simulator) {
      options.simulator = simulator;
      core::Stopwatch watch(options.limit);
      Incumbent incumbent(graph, options, watch);
      incumbent.offer(core::baseline_schedule(graph));
      const Schedule start = incumbent.schedule();
      const bool needed = simulator != nullptr && !incumbent.within_budget();
      offer_evolved(graph, options, incumbent, watch);
      if (simulator == nullptr) REQUIRE((incumbent.schedule() == start && watch.work() == 0));
      tight += needed;
      fits += needed && incumbent.within_budget();
      REQUIRE(watch.work() <= 60'000);
      return incumbent.schedule();
    };
    offered(nullptr);
    const auto simulator = sim::host_simulator(graph, 2);
    const Schedule found = offered(simulator.get());
    REQUIRE(reference::valid(graph, found));
    REQUIRE(options.scope.contains(graph, found));
    if (round % 40 != 0) continue;
    tests::FiberMachine fibers;
    FiberSimulator device(fibers, graph);
    REQUIRE(offered(&device) == found);
  }
  CHECK(fits > tight / 2);
}

}  // namespace
}  // namespace cairn::solvers::population_test
