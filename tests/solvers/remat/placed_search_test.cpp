// Tests the search that finds a schedule together with the addresses of its buffers. It is compared with the
// definitions, with the planner, and with the cheapest schedules.

#include "cairn/solvers/remat/anneal/placed_search.h"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/solvers/registry.h"
#include "cairn/solvers/remat/anneal/annealer.h"
#include "cairn/solvers/remat/anneal/placement.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::placed_search_test {
namespace {

using core::Graph;
using core::Schedule;
using tests::Random;

tests::RandomGraphOptions any_placed(Random& random) {
  tests::RandomGraphOptions kind = tests::any_graph(random);
  kind.in_place = false;
  kind.max_nodes = random.chance(20) ? 50 : 10;
  return kind;
}

/// Returns a plan with the buffers of the schedule at these offsets.
core::Plan plan_of(const Graph& graph, const Schedule& schedule, const std::vector<std::int64_t>& offsets) {
  core::Plan plan{.buffers = plan_problem(graph, schedule).buffers};
  REQUIRE(plan.buffers.size() == offsets.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    plan.buffers[i].offset = offsets[i];
    plan.bytes = std::max(plan.bytes, offsets[i] + plan.buffers[i].size);
  }
  return plan;
}

/// Returns the number of pairs of buffers that are live at the same time and share bytes.
std::int64_t conflicts_of(const core::Plan& plan) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      const core::Buffer &a = plan.buffers[i], &b = plan.buffers[k];
      const bool at_once = a.first <= b.last && b.first <= a.last;
      count += at_once && a.offset < b.offset + b.size && b.offset < a.offset + a.size ? 1 : 0;
    }
  }
  return count;
}

std::int64_t largest(const Graph& graph) {
  std::int64_t most = 1;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) most = std::max({most, graph.size(v), graph.scratch(v)});
  return most;
}

PlacedSchedule at_the_bottom(const Graph& graph, const Schedule& schedule) {
  return {schedule, std::vector<std::int64_t>(plan_problem(graph, schedule).buffers.size(), 0), 0};
}

TEST_CASE("a placement knows its conflicts after every stretch of moves, made and taken back") {
  int with = 0, without = 0, recomputed = 0;
  tests::for_each_seed(600, [&](Random& random) {
    const std::int64_t unit = random.chance(50) ? 1 : 48;
    const Graph graph = core::align_sizes(random_graph(random, any_placed(random)), unit);
    const Schedule start = random.chance(50) ? core::baseline_schedule(graph)
                                             : core::run_pinned_once(graph, random_schedule(random, graph));
    const std::int64_t high = tests::baseline_peak(graph);
    const std::int64_t capacity = std::max(largest(graph), random.between(high / 2, 2 * high)) / unit * unit;
    const auto seed = static_cast<std::uint64_t>(random.below(1000));
    Placement placement(graph, capacity, seed);
    Annealer annealer(graph, kAnySchedule, seed);
    std::vector<std::int64_t> offsets;
    for (const core::Buffer& buffer : plan_problem(graph, start).buffers)
      offsets.push_back(random.below((capacity - buffer.size) / unit + 1) * unit);
    annealer.start(start.steps, placement, offsets);
    annealer.begin_run(20'000, 1.0, 0.02);
    for (int stretch = 0; stretch < 12 && !annealer.run_ended(); ++stretch) {
      const Schedule now{annealer.current()};
      REQUIRE(core::reference::valid(graph, core::run_pinned_once(graph, now)));
      const core::Plan plan = plan_of(graph, now, placement.offsets(annealer.schedule()));
      REQUIRE(plan.bytes <= capacity);
      for (const core::Buffer& buffer : plan.buffers) REQUIRE((buffer.offset >= 0 && buffer.offset % unit == 0));
      REQUIRE(placement.conflicts() == conflicts_of(plan));
      REQUIRE((placement.overlap() > 0) == (placement.conflicts() > 0));
      (placement.conflicts() > 0 ? with : without) += 1;
      recomputed += now.length() > graph.node_count() ? 1 : 0;
      core::Stopwatch watch(core::Limit{.work = random.between(1, 1500)});
      annealer.advance(watch);
    }
    if (!annealer.fits()) return;
    const Schedule best{annealer.best()};
    REQUIRE(core::evaluate(graph, best).cost == annealer.best_cost());
    REQUIRE(conflicts_of(plan_of(graph, best, annealer.best_offsets())) == 0);
  });
  CHECK(with > 500);
  CHECK(without > 500);
  CHECK(recomputed > 200);
}

TEST_CASE("a placement that could be straightened has no conflict, and one that could not is as it was") {
  int straightened = 0, refused = 0;
  tests::for_each_seed(600, [&](Random& random) {
    const Graph graph = random_graph(random, any_placed(random));
    const Schedule schedule = core::baseline_schedule(graph);
    const std::int64_t peak = core::evaluate(graph, schedule).peak;
    const std::int64_t capacity = std::max(largest(graph), random.between(peak, 2 * peak));
    Placement placement(graph, capacity, 1);
    core::EditableSchedule editable(graph);
    editable.assign(schedule.steps);
    std::vector<std::int64_t> offsets;
    for (const core::Buffer& buffer : plan_problem(graph, schedule).buffers)
      offsets.push_back(random.below(capacity - buffer.size + 1));
    placement.assign(editable, offsets);
    const std::int64_t before = placement.conflicts();
    const bool done = placement.straighten(random.chance(50));
    (done ? straightened : refused) += 1;
    const core::Plan plan = plan_of(graph, schedule, placement.offsets(editable));
    REQUIRE(plan.bytes <= capacity);
    REQUIRE(conflicts_of(plan) == (done ? 0 : before));
    REQUIRE(placement.conflicts() == (done ? 0 : before));
  });
  CHECK(straightened > 100);
  CHECK(refused > 50);
}

TEST_CASE("schedules with addresses fit, are plans, and none is cheaper than the cheapest on peaks") {
  int asked = 0, found = 0, cheapest = 0;
  tests::for_each_seed(150, [&](Random& random) {
    tests::RandomGraphOptions kind = any_placed(random);
    kind.max_nodes = 8;
    const Graph graph = random_graph(random, kind);
    const Schedule start = core::baseline_schedule(graph);
    const std::int64_t budget = tests::any_budget(random, graph);
    const Solution exact = find_solver("exact-remat").solve(graph, {.budget = budget});
    const auto placed =
        search_placed(graph, {at_the_bottom(graph, start)}, {.budget = budget, .limit = {.work = 400'000}, .seed = 7})
            .best;
    if (exact.status != Status::optimal) {
      REQUIRE(!placed);
      return;
    }
    const core::Plan known = plan_memory(graph, exact.schedule);
    asked += known.bytes <= budget ? 1 : 0;
    if (!placed) return;
    found += known.bytes <= budget ? 1 : 0;
    REQUIRE(core::reference::valid(graph, placed->schedule));
    REQUIRE(core::reference::cost(graph, placed->schedule) == placed->cost);
    REQUIRE(placed->cost >= exact.cost);
    const core::Plan plan = plan_of(graph, placed->schedule, placed->offsets);
    REQUIRE(plan.bytes <= budget);
    REQUIRE(conflicts_of(plan) == 0);
    cheapest += known.bytes <= budget && placed->cost == exact.cost ? 1 : 0;
  });
  INFO(asked << " " << found << " " << cheapest);
  CHECK(asked > 60);
  CHECK(found >= asked * 9 / 10);
  CHECK(cheapest >= asked * 8 / 10);
}

TEST_CASE("schedules with addresses are the same for a seed and a work limit") {
  tests::for_each_seed(10, [&](Random& random) {
    tests::RandomGraphOptions kind = any_placed(random);
    kind.min_nodes = 30;
    kind.max_nodes = 60;
    const Graph graph = random_graph(random, kind);
    const Schedule start = core::baseline_schedule(graph);
    const std::int64_t budget = core::evaluate(graph, start).peak * 9 / 10;
    const auto once = [&] {
      return search_placed(graph, {at_the_bottom(graph, start)}, {.budget = budget, .limit = {.work = 500'000}}).best;
    };
    const auto first = once(), second = once();
    REQUIRE(first.has_value() == second.has_value());
    if (!first) return;
    REQUIRE(first->schedule.steps == second->schedule.steps);
    REQUIRE(first->offsets == second->offsets);
  });
}

TEST_CASE("a start that fits is known whatever the number of islands, and offsets of many values keep an alignment") {
  constexpr std::int64_t kUnit = 64;
  Random random(3);
  core::GraphBuilder builder;
  for (core::NodeId v = 0; v < 900; ++v) {
    core::Node node{.name = std::to_string(v), .size = random.between(1, 100) * kUnit, .cost = 1};
    for (int k = 0; k < 2 && v > 0; ++k)
      node.inputs.emplace_back(static_cast<core::NodeId>(random.between(std::max(0, v - 60), v - 1)));
    builder.add(node);
  }
  const Graph graph = builder.build();
  const Schedule start = core::baseline_schedule(graph);
  const core::Plan known = plan_memory(graph, start, {.alignment = kUnit, .limit = {.work = 3'000'000}});
  PlacedSchedule fitting{start, {}, 0};
  for (const core::Buffer& buffer : known.buffers) fitting.offsets.push_back(buffer.offset);
  const auto search = [&](std::int64_t budget, std::int64_t work) {
    return search_placed(graph, {at_the_bottom(graph, start), fitting},
                         {.budget = budget, .limit = {.work = work}, .islands = 1})
        .best;
  };
  const auto kept = search(known.bytes, 1000);
  REQUIRE(kept);
  CHECK(kept->cost == graph.node_count());
  const std::int64_t tighter = core::evaluate(graph, start).peak * 97 / 100 / kUnit * kUnit;
  const auto found = search(tighter, 30'000'000);
  REQUIRE(found);
  const core::Plan plan = plan_of(graph, found->schedule, found->offsets);
  CHECK(plan.bytes <= tighter);
  CHECK(conflicts_of(plan) == 0);
  for (const std::int64_t offset : found->offsets) REQUIRE(offset % kUnit == 0);
}

TEST_CASE("what is wrong with a search of placed schedules is said") {
  core::GraphBuilder builder;
  builder.add({.name = "a", .size = 4});
  builder.add({.name = "b", .size = 4, .inplace = {0, 0}, .inputs = {{0, 0}}});
  const Graph in_place = builder.build();
  CHECK_FALSE(can_search_placed(in_place));
  CHECK_THROWS_AS(search_placed(in_place, {{core::baseline_schedule(in_place), {0}, 0}}, {.budget = 8}),
                  std::logic_error);
  core::GraphBuilder other;
  other.add({.name = "a", .size = 4});
  const Graph one = other.build();
  CHECK(can_search_placed(one));
  CHECK_THROWS_AS(search_placed(one, {}, {.budget = 8}), std::logic_error);
  CHECK_FALSE(search_placed(one, {{core::baseline_schedule(one), {0}, 0}}, {.budget = 3}).best);
  const auto there =
      search_placed(one, {{core::baseline_schedule(one), {9}, 0}}, {.budget = 4, .limit = {.work = 10}}).best;
  REQUIRE(there);
  CHECK(there->offsets == std::vector<std::int64_t>{0});
}

}  // namespace
}  // namespace cairn::solvers::placed_search_test
