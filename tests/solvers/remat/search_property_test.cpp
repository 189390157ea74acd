// Tests annealing, and the search by several annealers (islands). The results are compared with the definitions and
// with the cheapest schedules.

#include <string>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/solvers/common/support/peers.h"
#include "cairn/solvers/registry.h"
#include "cairn/solvers/remat/anneal/annealer.h"
#include "cairn/solvers/remat/anneal/search.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::search_property_test {
namespace {

using core::Graph;
using core::Schedule;
namespace reference = core::reference;
using tests::Random;

constexpr Scope kSearched[] = {kAnySchedule, {OrderRule::input, 0}, {OrderRule::free, 2}, {OrderRule::input, 2}};

core::Stopwatch watch_of(std::int64_t work) { return core::Stopwatch(core::Limit{.work = work}); }

TEST_CASE("where annealing stands and the best it met are valid schedules of the scope, of the cost that it says") {
  int fitted = 0, recomputed = 0;
  tests::for_each_seed(1500, [&](Random& random) {
    tests::RandomGraphOptions kind = tests::any_graph(random);
    kind.max_nodes = random.chance(20) ? 60 : 10;
    const Graph graph = random_graph(random, kind);
    const Scope scope = kSearched[random.below(4)];
    const Schedule start = core::baseline_schedule(graph);
    const std::int64_t high = core::evaluate(graph, start).peak;
    const std::int64_t budget = random.between(core::peak_lower_bound(graph), high);
    Annealer annealer(graph, scope, static_cast<std::uint64_t>(random.below(1000)));
    annealer.start(start.steps, budget);
    REQUIRE(annealer.fits() == (high <= budget));
    for (int run = 0; run < 2; ++run) {
      core::Stopwatch watch = watch_of(3000);
      annealer.begin_run(400, 1.0, 0.02);
      while (!annealer.run_ended() && !watch.expired()) annealer.advance(watch);
      const Schedule current{annealer.current()};
      REQUIRE(reference::valid(graph, core::run_pinned_once(graph, current)));
      REQUIRE(scope.contains(graph, current));
      recomputed += core::evaluate(graph, current).recomputed > 0 ? 1 : 0;
      if (!annealer.fits()) continue;
      ++fitted;
      const Schedule best{annealer.best()};
      REQUIRE(scope.contains(graph, best));
      const core::Evaluation measures = core::evaluate(graph, best);
      REQUIRE(measures.valid());
      REQUIRE(measures.peak <= budget);
      REQUIRE(measures.cost == annealer.best_cost());
    }
  });
  CHECK(fitted > 500);
  CHECK(recomputed > 300);
}

/// Returns the result of a search that starts from the baseline and ends after `work` units of work.
Solution searched(const Graph& graph, SolveOptions options, std::int64_t work) {
  options.limit.work = work;
  core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch);
  incumbent.offer(core::baseline_schedule(graph));
  const Stop stop = search(graph, options, {}, incumbent, watch);
  return incumbent.finish(stop == Stop::limit);
}

TEST_CASE("searches of small graphs find the cheapest schedule, and the least peak, nearly always") {
  int budgets = 0, cheapest = 0, found = 0, peaks = 0, least = 0;
  tests::for_each_seed(150, [&](Random& random) {
    const Graph graph = random_graph(random, tests::any_graph(random, {.max_nodes = 8}));
    if (graph.value_count() > 14) return;
    SolveOptions options{.seed = static_cast<std::uint64_t>(random.below(100))};
    const Solution lowest = searched(graph, options, 60'000);
    const std::int64_t least_peak = reference::least_peak(graph);
    REQUIRE(lowest.peak >= least_peak);
    ++peaks;
    least += lowest.peak == least_peak ? 1 : 0;
    options.budget = random.between(least_peak, tests::baseline_peak(graph));
    const Solution best = searched(graph, options, 60'000);
    const std::int64_t cost = reference::cost(graph, *reference::cheapest_within(graph, *options.budget));
    ++budgets;
    if (best.peak > *options.budget) return;
    ++found;
    REQUIRE(best.cost >= cost);
    cheapest += best.cost == cost ? 1 : 0;
  });
  CHECK(found >= budgets * 95 / 100);
  CHECK(cheapest >= budgets * 90 / 100);
  CHECK(least >= peaks * 90 / 100);
}

TEST_CASE("a search keeps the scope and is never worse than where it starts") {
  tests::for_each_seed(60, [&](Random& random) {
    const Graph graph = random_graph(random, {.min_nodes = 5, .max_nodes = 30});
    for (const Scope& scope : kSearched) {
      SolveOptions options{.scope = scope};
      const core::Evaluation baseline = core::evaluate(graph, core::baseline_schedule(graph));
      if (random.chance(60)) options.budget = random.between(core::peak_lower_bound(graph), baseline.peak);
      if (!options.budget && random.chance(50)) options.max_cost = baseline.cost + random.between(0, baseline.cost);
      const Solution solution = searched(graph, options, 40'000);
      REQUIRE(scope.contains(graph, solution.schedule));
      tests::require_measured(graph, solution);
      REQUIRE(solution.peak <= baseline.peak);
      if (options.budget && baseline.peak <= *options.budget) REQUIRE(solution.cost <= baseline.cost);
      if (options.max_cost) REQUIRE(solution.cost <= *options.max_cost);
    }
  });
}

TEST_CASE("one seed and work limit give one schedule: searches, and auto") {
  tests::for_each_seed(6, [&](Random& random) {
    const Graph graph = random_graph(random, {.min_nodes = 70, .max_nodes = 90});
    SolveOptions options{.seed = static_cast<std::uint64_t>(random.below(100))};
    options.budget = (3 * core::peak_lower_bound(graph) + tests::baseline_peak(graph)) / 4;
    const Solution first = searched(graph, options, 300'000);
    REQUIRE(searched(graph, options, 300'000).schedule.steps == first.schedule.steps);
    options.limit.work = 2'000'000;
    const auto automatic = [&] { return find_solver("auto").solve(graph, options); };
    REQUIRE(automatic().schedule.steps == automatic().schedule.steps);
  });
}

/// A peer, i.e. another process that runs the same search. It always sends the same schedule `steps`, and records the
/// schedules that the search sends to it.
class OnePeer : public Peers {
 public:
  OnePeer(const Graph& graph, std::vector<core::NodeId> steps)
      : key_(std::stoull(graph.fingerprint(), nullptr, 16)), steps_(std::move(steps)) {}

  void send(std::uint64_t graph, const std::vector<core::NodeId>& steps) override {
    REQUIRE(graph == key_);
    sent.push_back(steps);
  }
  std::vector<std::vector<core::NodeId>> received(std::uint64_t graph) override {
    REQUIRE(graph == key_);
    ++asked;
    return {steps_};
  }

  std::vector<std::vector<core::NodeId>> sent;
  int asked = 0;

 private:
  const std::uint64_t key_;
  const std::vector<core::NodeId> steps_;
};

TEST_CASE("a search goes on from what its peers found, and sends them what it finds itself") {
  int sent = 0, better = 0;
  tests::for_each_seed(40, [&](Random& random) {
    const Graph graph = random_graph(random, {.min_nodes = 15, .max_nodes = 30});
    SolveOptions options{.seed = 1};
    options.budget = (core::peak_lower_bound(graph) + tests::baseline_peak(graph)) / 2;
    const Solution known = searched(graph, options, 200'000);
    OnePeer peer(graph, known.schedule.steps);
    options.seed = 2;
    options.peers = &peer;
    const Solution found = searched(graph, options, 2'000);
    if (peer.asked == 0) return;  // the baseline is already the best schedule, so the search did not ask its peer
    REQUIRE(found.peak <= std::max(known.peak, *options.budget));
    if (known.peak <= *options.budget) REQUIRE(found.cost <= known.cost);
    tests::require_measured(graph, found);
    for (const std::vector<core::NodeId>& steps : peer.sent) REQUIRE(reference::valid(graph, {steps}));
    sent += static_cast<int>(peer.sent.size());
    options.peers = nullptr;
    const Solution alone = searched(graph, options, 2'000);
    better += found.peak < alone.peak || found.cost < alone.cost ? 1 : 0;
  });
  CHECK(sent >= 10);
  CHECK(better >= 3);
}

TEST_CASE("auto starts from the schedule that it is given") {
  tests::for_each_seed(20, [&](Random& random) {
    const Graph graph = random_graph(random, {.min_nodes = 20, .max_nodes = 40});
    SolveOptions options{.limit = {.work = 300'000}};
    options.budget = (core::peak_lower_bound(graph) + tests::baseline_peak(graph)) / 2;
    const Solution better = find_solver("auto").solve(graph, options);
    if (better.peak > *options.budget) return;
    options.start = &better.schedule;
    options.limit.work = 10;
    const Solution again = find_solver("auto").solve(graph, options);
    REQUIRE(again.peak <= *options.budget);
    REQUIRE(again.cost <= better.cost);
  });
}

}  // namespace
}  // namespace cairn::solvers::search_property_test
