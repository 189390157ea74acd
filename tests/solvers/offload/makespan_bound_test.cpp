// Compares the lower bound on the makespan with the true optimum, for small random graphs and for graphs whose optimum
// is known.

#include "cairn/solvers/offload/bound/makespan_bound.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

#include "cairn/core/link.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/offload/bound/transfer_prices.h"
#include "cairn/solvers/remat/bound/stage_program.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/transfer_search.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::makespan_bound_test {
namespace {

using core::Graph;
using core::Link;
using core::NodeId;
using tests::baseline_peak;
using tests::Random;
namespace reference = core::reference;

struct Case {
  Graph graph;
  MakespanBoundOptions options;
};

Link random_link(Random& random) {
  Link link;
  link.bytes_per_second = random.between(1, 20) * (random.chance(50) ? 20'000'000 : 200'000'000);
  if (random.chance(30)) link.bytes_per_second *= 10;
  if (random.chance(50)) link.latency_ns = random.between(0, 5);
  link.duplex = random.chance(50);
  return link;
}

/// Returns a random graph with a link and a budget. In most cases, the budget is below the peak of the baseline.
Case random_case(Random& random, NodeId most_nodes) {
  while (true) {
    Graph graph = tests::random_graph(random, tests::any_graph(random, {.max_nodes = most_nodes}));
    const std::int64_t least = core::peak_lower_bound(graph), peak = baseline_peak(graph);
    if (graph.value_count() > 12 || (least >= peak && !random.chance(5))) continue;
    MakespanBoundOptions options;
    options.common.budget = random.chance(5) ? least - 1 : random.between(least, std::max(least, (least + peak) / 2));
    options.common.engine = false;
    options.link = random_link(random);
    if (random.chance(40)) options.host_budget = random.between(0, 2 * options.common.budget);
    return {std::move(graph), options};
  }
}

/// Returns the fastest schedule, or nothing if no schedule fits. Sets `given_up` if the search has used up `work`.
std::optional<reference::FastestSchedule> fastest(const Case& it, bool& given_up, std::int64_t work = 20'000) {
  constexpr std::int64_t kAnyBytes = std::int64_t{1} << 40;
  const reference::TransferLimits limits{it.options.common.budget, it.options.host_budget.value_or(kAnyBytes)};
  given_up = false;
  try {
    return reference::fastest_within(it.graph, limits, *it.options.link, work);
  } catch (const std::runtime_error&) {
    given_up = true;
    return std::nullopt;
  }
}

std::int64_t bound_of(const Case& it) {
  const CostBound bound = makespan_bound(it.graph, it.options);
  return bound.infeasible ? kUnknownCost : bound.value;
}

std::int64_t cost_of_all(const Graph& graph) {
  std::int64_t cost = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) cost += graph.cost(v);
  return cost;
}

/// Returns a chain whose last node reads the 60 bytes of the first node. Node `wide` needs the whole budget of 100
/// bytes, so the 60 bytes cannot stay on the device. Running the first node again takes longer than copying them to the
/// host and back.
Graph swapped() {
  return tests::build_graph({tests::make_node("first", 60, {}, 1'000'000), tests::make_node("second", 35, {0}, 5),
                             tests::make_node("wide", 65, {1}, 5), tests::make_node("narrow", 5, {2}, 0),
                             tests::make_node("last", 5, {0, 3}, 7)});
}

}  // namespace

TEST_CASE("The bound on the makespan never exceeds the optimum of small graphs", "[solvers]") {
  std::int64_t checked = 0, tight = 0, above_cost = 0, infeasible = 0;
  tests::for_each_seed(700, [&](Random& random) {
    Case it = random_case(random, 5);
    bool given_up = false;
    const auto best = fastest(it, given_up);
    if (given_up) return;
    const std::int64_t bound = bound_of(it);
    if (!best) {
      infeasible += bound == kUnknownCost ? 1 : 0;
      return;
    }
    CAPTURE(it.options.common.budget, it.options.host_budget.value_or(-1), core::to_string(*it.options.link));
    ++checked;
    REQUIRE(bound <= best->makespan);
    REQUIRE(bound >= cost_of_all(it.graph));
    tight += bound == best->makespan ? 1 : 0;
    above_cost += bound > cost_of_all(it.graph) ? 1 : 0;
    for (const OrderRule order : {OrderRule::input, OrderRule::stages}) {
      if (!Scope{order}.contains(it.graph, best->schedule)) continue;
      it.options.common.order = order;
      REQUIRE(bound_of(it) <= best->makespan);
    }
    it.options.common.order = OrderRule::free;
    const std::atomic<std::int64_t> known = best->makespan + random.between(0, 5);
    it.options.common.known_cost = &known;
    REQUIRE(bound_of(it) <= best->makespan);
  });
  INFO("checked " << checked << ", tight " << tight << ", above the cost " << above_cost << ", infeasible "
                  << infeasible);
  REQUIRE(tight > checked / 2);
  REQUIRE(above_cost > checked / 20);
  REQUIRE(infeasible > 0);
}

TEST_CASE("The prices of transfers bound the makespan for every cut and order", "[solvers]") {
  std::int64_t above_cost = 0;
  tests::for_each_seed(400, [&](Random& random) {
    const Case it = random_case(random, 5);
    bool given_up = false;
    const auto best = fastest(it, given_up);
    if (given_up || !best) return;
    const Scope input{OrderRule::input};
    const OrderRule order = input.contains(it.graph, best->schedule) ? OrderRule::input : OrderRule::free;
    const FirstRunStages stages(it.graph, chain_for(it.graph, order), it.options.common.budget, kUnknownCost);
    for (std::int32_t cut = 0; cut < stages.chain_length(); ++cut) {
      TransferPrices prices(stages, *it.options.link, it.options.host_budget, cut);
      core::Stopwatch watch(core::Limit{});
      for (const std::int64_t beyond : {2, 1000}) prices.ascend(best->makespan + beyond, 40, watch);
      CAPTURE(cut, prices.bound(), best->makespan);
      REQUIRE(prices.bound() <= best->makespan);
      above_cost += prices.bound() > cost_of_all(it.graph) ? 1 : 0;
    }
  });
  REQUIRE(above_cost > 20);
}

TEST_CASE("Less memory or bandwidth never lowers the bound on the makespan", "[solvers]") {
  // The subgradient method ends before it reaches the optimum of the relaxation. It stays below the optimum by less
  // than this fraction.
  constexpr double kLack = 0.01;
  std::int64_t rises = 0;
  tests::for_each_seed(150, [&](Random& random) {
    const Case it = random_case(random, 6);
    const auto bound = static_cast<double>(bound_of(it));
    Case less = it;
    less.options.common.budget -= random.between(1, 4);
    const auto with_less = static_cast<double>(bound_of(less));
    REQUIRE(with_less >= bound * (1 - kLack) - 1);
    Case slower = it;
    slower.options.link->bytes_per_second = it.options.link->bytes_per_second / 2 + 1;
    const auto with_slower = static_cast<double>(bound_of(slower));
    REQUIRE(with_slower >= bound * (1 - kLack) - 1);
    rises += with_less > bound || with_slower > bound ? 1 : 0;
  });
  REQUIRE(rises > 15);
}

TEST_CASE("Without useful transfers the bound on the makespan is the bound on the cost", "[solvers]") {
  tests::for_each_seed(100, [&](Random& random) {
    Case it = random_case(random, 7);
    const CostBound cost = cost_bound(it.graph, it.options.common);
    const auto same = [&](const CostBound& bound) {
      REQUIRE(bound.infeasible == cost.infeasible);
      if (!cost.infeasible) REQUIRE(bound.value == cost.value);
    };
    it.options.link.reset();
    same(makespan_bound(it.graph, it.options));
    it.options.link = Link{1'000'000'000, 0, true};
    it.options.host_budget = 0;
    same(makespan_bound(it.graph, it.options));
    it.options.link = Link{1, 0, true};
    it.options.host_budget.reset();
    if (!cost.infeasible) same(makespan_bound(it.graph, it.options));
  });
}

TEST_CASE("The bound on the makespan counts the time in which steps wait for copies", "[solvers]") {
  const Graph graph = swapped();
  MakespanBoundOptions options;
  options.common.budget = 100;
  options.common.engine = false;
  for (const bool duplex : {true, false}) {
    options.link = Link{1'000'000'000, 40, duplex};  // a copy of the first output takes 100 ns
    bool given_up = false;
    const auto best = fastest({graph, options}, given_up, 10'000'000);
    REQUIRE(best.has_value());
    CAPTURE(best->makespan);
    const std::int64_t bound = makespan_bound(graph, options).value;
    CHECK(bound <= best->makespan);
    // If both directions share the link, the subgradient method ends slightly below the optimum.
    CHECK(bound >= best->makespan - (duplex ? 0 : 5));
  }
  options.host_budget = 59;  // the first output does not fit on the host, so its node must run again
  CHECK(makespan_bound(graph, options).value == cost_of_all(graph) + 1'000'000);
  options.common.budget = 99;
  CHECK(makespan_bound(graph, options).infeasible);
}

TEST_CASE("The bound on the makespan counts an evict once for several fetches", "[solvers]") {
  // The output of the first node is evicted once and fetched twice. Each of these copies takes 100 units of time,
  // during which no step can run. So the makespan is kCost + 300, and the bound must be less than 30 below it.
  constexpr std::int64_t kCost = 1'000'000;
  const Graph graph =
      tests::build_graph({tests::make_node("first", 60, {}, kCost), tests::make_node("second", 35, {0}, 0),
                          tests::make_node("wide", 65, {1}, 0), tests::make_node("narrow", 5, {2}, 0),
                          tests::make_node("middle", 30, {0, 3}, 0), tests::make_node("wider", 70, {4}, 0),
                          tests::make_node("thin", 5, {5}, 0), tests::make_node("last", 5, {0, 6}, 0)});
  MakespanBoundOptions options;
  options.common.budget = 100;
  options.common.engine = false;
  options.link = Link{1'000'000'000, 40, false};
  const std::int64_t bound = makespan_bound(graph, options).value;
  CHECK(bound <= kCost + 300);
  CHECK(bound > kCost + 270);
}

TEST_CASE("The bound on the makespan keeps its limits and bears the largest numbers", "[solvers]") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 59;
  const Graph graph =
      tests::build_graph({tests::make_node("a", kHuge, {}, kHuge), tests::make_node("b", kHuge, {0}, kHuge),
                          tests::make_node("c", kHuge, {1}, kHuge), tests::make_node("d", kHuge, {0, 2}, kHuge)});
  MakespanBoundOptions options;
  options.common.engine = false;
  for (const std::int64_t rate : {std::int64_t{1}, std::int64_t{1'000'000'000}, std::int64_t{1} << 62}) {
    options.link = Link{rate, 0, false};
    options.common.budget = 3 * kHuge;
    options.host_budget = kHuge;
    const CostBound bound = makespan_bound(graph, options);
    CHECK_FALSE(bound.infeasible);
    CHECK(bound.value == 4 * kHuge);
    options.common.budget = 3 * kHuge - 1;
    CHECK(makespan_bound(graph, options).infeasible);
  }
  options.common.budget = 3 * kHuge;
  options.common.limit.work = 0;
  CHECK(makespan_bound(graph, options).work <= 100);
}

}  // namespace cairn::solvers::makespan_bound_test
