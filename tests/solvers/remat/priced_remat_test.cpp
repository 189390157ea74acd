#include "cairn/solvers/remat/repair/priced_remat.h"

#include "cairn/core/profile.h"
#include "cairn/models/random_graphs.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::priced_remat_test {
namespace {

using core::Graph;
using tests::Random;

struct Priced {
  bool fits;
  std::int64_t peak, cost;
  core::Schedule schedule;
};

Priced priced(const Graph& graph, std::int64_t budget, const Scope& scope = kAnySchedule) {
  SolveOptions options{.budget = budget, .scope = scope};
  core::Stopwatch watch(core::Limit{});
  Incumbent incumbent(graph, options, watch);
  const bool fits = offer_priced(graph, graph.input_order(), budget, incumbent, watch);
  return {fits, incumbent.peak(), incumbent.cost(), incumbent.schedule()};
}

TEST_CASE("byte prices give valid schedules of the scope, and say whether one is within the budget") {
  constexpr Scope kScopes[] = {kAnySchedule, {OrderRule::input, 0}, {OrderRule::free, 2}, {OrderRule::input, 2}};
  int fitted = 0, recomputed = 0;
  tests::for_each_seed(2000, [&](Random& random) {
    tests::RandomGraphOptions kind = tests::any_graph(random);
    kind.max_nodes = random.chance(20) ? 60 : 10;
    const Graph graph = random_graph(random, kind);
    const Scope scope = kScopes[random.below(4)];
    const core::Evaluation baseline = core::evaluate(graph, core::baseline_schedule(graph));
    const std::int64_t budget = random.between(core::peak_lower_bound(graph), baseline.peak);
    const Priced found = priced(graph, budget, scope);
    tests::require_measured(graph, found);
    REQUIRE(scope.contains(graph, found.schedule));
    REQUIRE((!found.fits || found.peak <= budget));
    if (budget == baseline.peak) REQUIRE(found.cost == baseline.cost);
    fitted += found.fits && budget < baseline.peak ? 1 : 0;
    recomputed += core::evaluate(graph, found.schedule).recomputed > 0 ? 1 : 0;
  });
  CHECK(fitted > 200);
  CHECK(recomputed > 200);
}

TEST_CASE("byte prices hold a value of many bytes or make it again, as its cost says") {
  // `a` (10 bytes) is read by b and by the last node, and c (20 bytes) runs between these two. Holding `a` during c
  // needs 31 bytes. Computing `a` again afterwards needs only 21 bytes. So `a` must be computed again within 21 bytes,
  // and held within 31 bytes.
  const auto graph = [](std::int64_t cost_of_a) {
    core::GraphBuilder builder;
    const auto add = [&](std::int64_t size, std::int64_t cost, std::vector<core::OutputRef> inputs) {
      core::Node node{.size = size, .cost = cost, .inputs = std::move(inputs)};
      return builder.add(std::move(node));
    };
    const core::NodeId a = add(10, cost_of_a, {}), b = add(1, 1, {{a, 0}});
    const core::NodeId c = add(20, 1, {{b, 0}}), c2 = add(1, 1, {{c, 0}});
    add(1, 1, {{a, 0}, {c2, 0}});
    return builder.build();
  };
  const Priced tight = priced(graph(5), 21);
  CHECK(tight.fits);
  CHECK(tight.schedule.length() == 6);
  CHECK(tight.cost == 5 + 4 + 5);
  CHECK(priced(graph(5), 31).schedule.length() == 5);
}

TEST_CASE("byte prices offer nothing where there is no time for a round") {
  const Graph graph = models::generate_layered({.nodes = 100, .width = 0.27, .seed = 1});
  SolveOptions options{.budget = 1};
  core::Stopwatch watch(core::Limit{.work = -1});
  Incumbent incumbent(graph, options, watch);
  CHECK_FALSE(offer_priced(graph, graph.input_order(), 1, incumbent, watch));
  CHECK(incumbent.schedule().steps.empty());
}

TEST_CASE("byte prices bring a layered graph to a budget that no order reaches without recomputation") {
  const Graph graph = models::generate_layered({.nodes = 500, .width = 0.36, .seed = 1});
  const core::Evaluation baseline = core::evaluate(graph, core::baseline_schedule(graph));
  const Priced found = priced(graph, baseline.peak / 10 * 8);
  CHECK(found.fits);
  CHECK(found.cost < baseline.cost / 10 * 12);
  CHECK(priced(graph, baseline.peak / 10 * 8).schedule.steps == found.schedule.steps);
}

}  // namespace
}  // namespace cairn::solvers::priced_remat_test
