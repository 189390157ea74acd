#include <atomic>
#include <cstdint>
#include <vector>

#include "cairn/solvers/order/internal/search/anneal.h"
#include "cairn/solvers/order/internal/search/beam.h"
#include "cairn/solvers/order/internal/search/search.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/reference/reference_order.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::solvers::order_search_test {
namespace {

StepGraph random_steps(tests::Random& random, core::NodeId least, core::NodeId most) {
  return StepGraph(tests::random_graph(random, {.min_nodes = least, .max_nodes = most}));
}

/// Returns a step graph with `nodes` steps, and with twice as many edges between random pairs of steps.
StepGraph wide_steps(std::uint64_t seed, StepId nodes) {
  tests::Random random(seed);
  std::vector<StepGraph::Step> steps(nodes);
  std::vector<StepGraph::Edge> edges;
  for (StepGraph::Step& step : steps) {
    const std::int64_t bytes = random.between(1, 1000);
    step = {bytes, 0, bytes};
  }
  for (StepId i = 0; i < 2 * nodes; ++i) {
    const auto to = static_cast<StepId>(random.between(1, nodes - 1));
    edges.emplace_back(static_cast<StepId>(random.below(to)), to);
  }
  std::vector<bool> read(steps.size());
  for (const auto& [from, to] : edges) read[from] = true;
  for (StepId s = 0; s < nodes; ++s) {
    if (!read[s]) steps[s].output = 0;
  }
  return StepGraph(steps, edges);
}

TEST_CASE("moving steps keeps the order valid and its profile that of the plain evaluation") {
  tests::Random random(1);
  int moves = 0;
  for (int i = 0; i < 400; ++i) {
    const StepGraph graph = random_steps(random, 2, 30);
    const StepId n = graph.step_count();
    core::EditableSchedule order = editable_order(graph);
    order.assign(graph.any_order());
    for (int k = 0; k < 40; ++k) {
      const auto from = static_cast<std::int32_t>(random.below(n));
      const auto [first, last] = order.legal(order.at(from));
      REQUIRE(first <= from);
      REQUIRE(last >= from);
      const auto to = static_cast<std::int32_t>(random.between(first, last));
      if (to == from) continue;
      order.evaluate_move(order.at(from), to);
      if (random.chance(30)) continue;  // evaluates the move, but does not make it
      order.move();
      ++moves;
      REQUIRE(core::reference::is_order(graph, order.steps()));
      const std::vector<std::int64_t> plain = profile(graph, order.steps());
      for (std::int32_t p = 0; p < n; ++p) {
        REQUIRE(order.at(p) == order.steps()[p]);
        REQUIRE(order.place(order.at(p)) == p);
        REQUIRE(order.during(p) == plain[2 * p + 1]);
        REQUIRE(order.before(order.next(order.at(p))) == plain[2 * p + 2]);
      }
      REQUIRE(order.peak() == peak(graph, order.steps()));
    }
  }
  CHECK(moves > 2000);
}

TEST_CASE("a step cannot leave its legal range") {
  tests::Random random(2);
  for (int i = 0; i < 300; ++i) {
    const StepGraph graph = random_steps(random, 2, 12);
    core::EditableSchedule order = editable_order(graph);
    order.assign(graph.any_order());
    for (std::int32_t from = 0; from < graph.step_count(); ++from) {
      const auto [first, last] = order.legal(order.at(from));
      for (std::int32_t to = 0; to < graph.step_count(); ++to) {
        std::vector<StepId> moved = order.steps();
        const StepId s = moved[from];
        moved.erase(moved.begin() + from);
        moved.insert(moved.begin() + to, s);
        CHECK(core::reference::is_order(graph, moved) == (to >= first && to <= last));
      }
    }
  }
}

TEST_CASE("a beam that leaves out nothing finds the least peak forward and backward") {
  tests::Random random(3);
  for (int i = 0; i < 1500; ++i) {
    const core::Graph nodes = tests::random_graph(random, {.min_nodes = 2, .max_nodes = 9});
    const StepGraph graph(nodes);
    const std::int64_t least = core::reference::least_peak_without_recomputation(nodes);
    for (const bool backward : {false, true}) {
      core::Stopwatch watch{core::Limit{}};
      Beam beam(graph, backward, 1 << 16);
      beam.start(least);
      REQUIRE(beam.advance(watch) == Beam::Outcome::found);
      REQUIRE(core::reference::is_order(graph, beam.order()));
      CHECK(peak(graph, beam.order()) == least);
      beam.start(least - 1);
      CHECK(beam.advance(watch) == Beam::Outcome::none);
    }
  }
}

TEST_CASE("a narrow beam stays within its limit and claims nothing it has not shown") {
  tests::Random random(4);
  int found = 0, truncated = 0;
  for (int i = 0; i < 1500; ++i) {
    const core::Graph nodes = tests::random_graph(random, {.min_nodes = 6, .max_nodes = 11});
    const StepGraph graph(nodes);
    const std::int64_t least = core::reference::least_peak_without_recomputation(nodes);
    const std::int64_t limit = least + random.between(-1, 1);
    core::Stopwatch watch{core::Limit{}};
    Beam beam(graph, random.chance(50), 2);
    beam.start(limit);
    const Beam::Outcome outcome = beam.advance(watch);
    found += outcome == Beam::Outcome::found;
    truncated += outcome == Beam::Outcome::truncated;
    if (outcome == Beam::Outcome::found) {
      REQUIRE(core::reference::is_order(graph, beam.order()));
      CHECK(peak(graph, beam.order()) <= limit);
    }
    if (outcome == Beam::Outcome::none) CHECK(limit < least);
  }
  CHECK(found > 100);
  CHECK(truncated > 10);
}

TEST_CASE("a beam goes on where its watch stopped it") {
  const StepGraph graph = wide_steps(5, 60);
  const std::int64_t limit = peak(graph, graph.any_order()) * 9 / 10;
  core::Stopwatch endless{core::Limit{}};
  for (const bool backward : {false, true}) {
    Beam whole(graph, backward, 64), parts(graph, backward, 64);
    whole.start(limit);
    parts.start(limit);
    const Beam::Outcome expected = whole.advance(endless);
    Beam::Outcome outcome = Beam::Outcome::running;
    for (int i = 0; i < 100'000 && outcome == Beam::Outcome::running; ++i) {
      core::Stopwatch watch(core::Limit{.work = 100});
      outcome = parts.advance(watch);
    }
    REQUIRE(outcome == expected);
    if (outcome == Beam::Outcome::found) CHECK(parts.order() == whole.order());
  }
}

TEST_CASE("the search proves small graphs optimal and says so") {
  tests::Random random(6);
  for (int i = 0; i < 300; ++i) {
    const core::Graph nodes = tests::random_graph(random, {.min_nodes = 1, .max_nodes = 9});
    const StepGraph graph(nodes);
    std::int64_t proved = -1, found = -1;
    OrderSearchOptions options{.seed = static_cast<std::uint64_t>(i)};
    options.lower_bound = -1;  // a bound that the search never reaches
    options.proved = [&](std::int64_t bytes) { proved = bytes; };
    options.found = [&](const std::vector<StepId>& order, std::int64_t bytes) {
      CHECK(peak(graph, order) == bytes);
      if (found >= 0) CHECK(bytes < found);
      found = bytes;
    };
    core::Stopwatch watch{core::Limit{}};
    const std::vector<StepId> order = search_order(graph, graph.any_order(), options, watch, 1 + i % 3);
    REQUIRE(core::reference::is_order(graph, order));
    CHECK(peak(graph, order) == core::reference::least_peak_without_recomputation(nodes));
    CHECK(proved == peak(graph, order));
    if (found >= 0) CHECK(found == peak(graph, order));
  }
}

TEST_CASE("for a work limit the search is deterministic and never worse than its start") {
  for (const StepId nodes : {60, 400}) {
    const StepGraph graph = wide_steps(7, nodes);
    const std::vector<StepId> start = graph.any_order();
    for (const int threads : {1, 2, 3}) {
      for (const std::int64_t work : {0, 1000, 1'500'000}) {
        core::Limit limit{.work = work};
        core::Stopwatch first_watch(limit), second_watch(limit);
        const std::vector<StepId> first = search_order(graph, start, {}, first_watch, threads);
        const std::vector<StepId> second = search_order(graph, start, {}, second_watch, threads);
        REQUIRE(core::reference::is_order(graph, first));
        CHECK(first == second);
        CHECK(first_watch.work() == second_watch.work());
        CHECK(peak(graph, first) <= peak(graph, start));
        if (work >= 1'000'000) CHECK(peak(graph, first) < peak(graph, start));
      }
    }
  }
}

TEST_CASE("the search heeds the stop flag and the lower bound") {
  const StepGraph graph = wide_steps(8, 300);
  const std::vector<StepId> start = graph.any_order();
  const std::atomic<bool> stopped = true;
  core::Limit limit{.stop = &stopped};
  core::Stopwatch watch(limit);
  CHECK(search_order(graph, start, {}, watch, 2) == start);

  std::atomic<bool> stop = false;
  limit.stop = &stop;
  core::Stopwatch stopped_later(limit);
  OrderSearchOptions options;
  options.found = [&](const std::vector<StepId>&, std::int64_t) { stop = true; };
  CHECK(peak(graph, search_order(graph, start, options, stopped_later, 2)) < peak(graph, start));

  core::Stopwatch endless{core::Limit{}};
  options = {};
  options.lower_bound = peak(graph, start);
  CHECK(search_order(graph, start, options, endless, 2) == start);
  options.lower_bound = peak(graph, start) - 1;
  CHECK(peak(graph, search_order(graph, start, options, endless, 2)) < peak(graph, start));
}

TEST_CASE("the search copes with graphs that leave it nothing to do") {
  core::Stopwatch watch{core::Limit{}};
  CHECK(search_order(StepGraph(), {}, {}, watch).empty());
  OrderSearchOptions options{.lower_bound = -1};
  CHECK(search_order(StepGraph({{3, 1, 0}}, {}), {}, options, watch) == std::vector<StepId>{0});
  const StepGraph chain({{3, 0, 0}, {4, 3, 0}, {5, 4, 0}}, {{0, 1}, {1, 2}});
  CHECK(search_order(chain, {}, options, watch, 2) == std::vector<StepId>{0, 1, 2});
  const StepGraph nothing(std::vector<StepGraph::Step>(5), {{0, 1}, {0, 2}});
  CHECK(peak(nothing, search_order(nothing, {}, options, watch, 2)) == 0);
}

}  // namespace
}  // namespace cairn::solvers::order_search_test
