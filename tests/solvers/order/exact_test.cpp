#include "cairn/solvers/order/internal/search/exact.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cairn/core/support/random.h"
#include "cairn/solvers/order/internal/reduction/min_cut.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/reference/reference_order.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::solvers::exact_test {
namespace {

/// Returns a function that returns a random number from 0 to most - 1.
auto drawn_below(core::Random& random) {
  return [&random](std::int64_t most) { return static_cast<StepId>(random.uniform() * static_cast<double>(most)); };
}

/// Returns the step graph of a computation graph with `count` nodes, and with up to `edges` edges between random pairs.
StepGraph random_steps(StepId count, int edges, std::uint64_t seed) {
  core::Random random(seed);
  const auto below = drawn_below(random);
  core::GraphBuilder builder;
  for (StepId v = 0; v < count; ++v) {
    core::Node node{.size = 1 + below(1 << 20)};
    builder.add(std::move(node));
  }
  while (edges-- > 0) {
    const StepId a = below(count), b = below(count);
    if (a != b) builder.add_input(std::max(a, b), std::min(a, b));
  }
  return StepGraph(builder.build());
}

/// Returns the step graph of a computation graph with `count` nodes in layers of `width` nodes. A node reads one or two
/// nodes of the layer before, and one node in seven also reads a node two layers before. Odd seeds add scratch, and
/// every second odd seed also adds kept nodes.
StepGraph layered_steps(StepId count, StepId width, std::uint64_t seed) {
  core::Random random(seed);
  const auto below = drawn_below(random);
  core::GraphBuilder builder;
  for (StepId v = 0; v < count; ++v) {
    core::Node node{.size = below(seed % 3 == 0 ? 8 : 1 << 20)};
    if (seed % 2 == 1) node.scratch = below(2) * below(1 << 18);
    node.keep = seed % 4 == 3 && below(8) == 0;
    const StepId layer = (v / width - 1) * width;
    for (StepId k = 0; v >= width && k < 2; ++k) node.inputs.push_back(layer + below(width));
    if (v >= 2 * width && below(7) == 0) node.inputs.push_back(layer - width + below(width));
    builder.add(std::move(node));
  }
  return StepGraph(builder.build());
}

/// Returns whether some order keeps the memory during each step below `bytes`. Visits every cut, i.e. every set of
/// steps that have run, that such an order can reach.
bool has_order_below(const StepGraph& graph, std::int64_t bytes) {
  const StepId n = graph.step_count();
  const auto contains = [](std::uint64_t set, StepId s) { return (set >> s & 1) != 0; };
  const auto all_in = [&](std::uint64_t set, std::span<const StepId> steps) {
    return std::all_of(steps.begin(), steps.end(), [&](StepId s) { return contains(set, s); });
  };
  const std::uint64_t all = (std::uint64_t{1} << n) - 1;
  std::unordered_set<std::uint64_t> seen{0};
  std::vector<std::pair<std::uint64_t, std::int64_t>> open{{0, 0}};
  while (!open.empty()) {
    const auto [set, memory] = open.back();
    open.pop_back();
    if (set == all) return true;
    for (StepId s = 0; s < n; ++s) {
      if (contains(set, s) || !all_in(set, graph.predecessors(s)) || memory + graph[s].rise >= bytes) continue;
      const std::uint64_t next = set | std::uint64_t{1} << s;
      if (!seen.insert(next).second) continue;
      std::int64_t after = memory + graph[s].rise - graph[s].drop;
      for (const StepId p : graph.predecessors(s)) after -= all_in(next, graph.successors(p)) ? graph[p].output : 0;
      open.emplace_back(next, after);
    }
  }
  return false;
}

TEST_CASE("no cut search below the exact peak comes to the end") {
  // These graphs are long and narrow. In such graphs, the search passes many cuts of low memory (valleys), and discards
  // all alternatives to a valley once it has passed the valley.
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const StepGraph steps = seed % 2 == 0 ? layered_steps(60, 3, seed / 2) : layered_steps(48, 4, seed / 2);
    core::Stopwatch watch({});
    const ExactResult result = exact_order(steps, {}, watch);
    REQUIRE(result.proved);
    REQUIRE(core::reference::is_order(steps, result.order));
    REQUIRE(peak(steps, result.order) == result.peak);
    REQUIRE_FALSE(has_order_below(steps, result.peak));
  }
}

TEST_CASE("exact orders of random computation graphs have the reference's least peak") {
  tests::Random random(41);
  for (int i = 0; i < 1500; ++i) {
    const core::Graph graph = tests::random_graph(random, {.max_nodes = 12});
    const std::int64_t least = core::reference::least_peak_without_recomputation(graph);
    const StepGraph steps(graph);
    core::Stopwatch watch({});
    const ExactResult result = exact_order(steps, {}, watch);
    REQUIRE(result.proved);
    REQUIRE(result.lower_bound == least);
    REQUIRE(result.peak == least);
    REQUIRE(core::reference::peak(graph, {result.order}) == least);
  }
}

TEST_CASE("exact search proves what no order can do") {
  const StepGraph steps = random_steps(30, 60, 3);
  core::Stopwatch watch({});
  const ExactResult best = exact_order(steps, {}, watch);
  REQUIRE(best.proved);

  ExactOptions options{.upper_bound = best.peak};
  const ExactResult same = exact_order(steps, options, watch);
  CHECK(same.proved);
  CHECK(same.peak == best.peak);
  CHECK(peak(steps, same.order) == best.peak);

  options.upper_bound = best.peak - 1;
  const ExactResult none = exact_order(steps, options, watch);
  CHECK(none.proved);
  CHECK(none.order.empty());
  CHECK(none.lower_bound > options.upper_bound);
  CHECK_FALSE(exact_oracle(options, watch)(steps, Cut(steps.step_count()), Cut(steps.step_count(), true)).has_value());
}

TEST_CASE("exact search does not depend on which end the memory is at") {
  // A set of steps needs two 64-bit words for 70 steps, and three for 150 steps. In the first graph, memory grows, so
  // it is least at the beginning. The mirrored graph has the steps in reverse order, with rises and drops exchanged, so
  // memory is least at the end.
  for (const StepId count : {70, 150}) {
    std::vector<StepGraph::Step> steps(static_cast<std::size_t>(count));
    std::vector<StepGraph::Edge> edges;
    core::Random random(static_cast<std::uint64_t>(count));
    for (StepId s = 0; s < count; ++s) {
      steps[s] = {static_cast<std::int64_t>(random.next() % 100), static_cast<std::int64_t>(random.next() % 80), 0};
      if (s >= 3) edges.emplace_back(s - 3 + static_cast<StepId>(random.next() % 2), s);
      if (s >= 9) edges.emplace_back(s - 9, s);
    }
    std::vector<StepGraph::Step> mirrored;
    std::vector<StepGraph::Edge> turned;
    for (StepId s = count; s-- > 0;) mirrored.push_back({steps[s].drop, steps[s].rise, 0});
    for (const auto& [from, to] : edges) turned.emplace_back(count - 1 - to, count - 1 - from);
    const StepGraph forward(std::move(steps), std::move(edges)), backward(std::move(mirrored), std::move(turned));

    core::Stopwatch watch({});
    const ExactResult ahead = exact_order(forward, {}, watch), back = exact_order(backward, {}, watch);
    REQUIRE(ahead.proved);
    REQUIRE(back.proved);
    CHECK(core::reference::is_order(forward, ahead.order));
    CHECK(peak(forward, ahead.order) == ahead.peak);
    CHECK(back.peak + memory(forward, Cut(count, true)) == ahead.peak);
  }
}

TEST_CASE("exact search that runs out of memory or time keeps an order and a bound") {
  const StepGraph steps = random_steps(90, 180, 5);
  for (const bool short_of_memory : {false, true}) {
    ExactOptions options;
    core::Limit limit;
    if (short_of_memory) {
      options.memory_bytes = 1 << 20;
    } else {
      limit.work = 200'000;
    }
    core::Stopwatch watch(limit), again(limit);
    const ExactResult result = exact_order(steps, options, watch);
    CHECK_FALSE(result.proved);
    REQUIRE(core::reference::is_order(steps, result.order));
    CHECK(peak(steps, result.order) == result.peak);
    core::Stopwatch bound_watch({});
    CHECK(result.lower_bound >= cut_lower_bound(steps, bound_watch));
    CHECK(result.lower_bound < result.peak);
    CHECK(exact_order(steps, options, again).order == result.order);
  }
  core::Stopwatch watch({});
  CHECK(core::reference::is_order(steps, exact_order(steps, {.memory_bytes = 0}, watch).order));
}

TEST_CASE("the least closure is the largest of least weight") {
  const std::vector<std::int64_t> weights{5, -3, -3, 0, 2, -2};
  const std::vector<Need> needs{{1, 0}, {2, 0}, {3, 2}, {5, 4}};
  CHECK(least_closure(weights, needs) == std::vector<std::uint8_t>{1, 1, 1, 1, 1, 1});
  const std::vector<std::int64_t> dearer{7, -3, -3, 0, 2, -2};
  CHECK(least_closure(dearer, needs) == std::vector<std::uint8_t>{0, 0, 0, 0, 1, 1});
  CHECK(least_closure({}, {}).empty());
}

}  // namespace
}  // namespace cairn::solvers::exact_test
