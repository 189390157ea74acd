#include "cairn/solvers/remat/kumar/tw_remat.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"
#include "cairn/solvers/remat/kumar/tw_program.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::solvers::tw_remat_test {
namespace {

using core::Graph;
using core::NodeId;

/// Returns the training graph of a chain. It has the forward nodes 0 to n-1 and the backward nodes n to 2n-1. All sizes
/// and costs are 1.
Graph training_chain(int n) {
  core::GraphBuilder builder;
  for (int i = 0; i < 2 * n; ++i) {
    core::Node node;
    node.size = node.cost = 1;
    node.backward = i >= n;
    if (i > 0) node.inputs.push_back(i - 1);
    if (i > n) node.inputs.push_back(2 * n - 1 - i);
    builder.add(node);
  }
  return builder.build();
}

TEST_CASE("TWRemat(k) is valid for every k, and k above the number of bags is NoRemat") {
  tests::Random random(1);
  for (int i = 0; i < 300; ++i) {
    const Graph graph = tests::random_graph(random, {.max_nodes = 30});
    for (const std::int64_t k : {1, 2, 3, 5, 8}) {
      const Solution solution = tw_remat(graph, {.k = k});
      REQUIRE(core::reference::valid(graph, solution.schedule));
      CHECK(solution.peak == core::reference::peak(graph, solution.schedule));
    }
    CHECK(tw_remat(graph, {.k = graph.node_count() + 1}).schedule == core::baseline_schedule(graph));
  }
}

TEST_CASE("the program knows its length, and trims as drop_unread does") {
  tests::Random random(7);
  for (int i = 0; i < 1500; ++i) {
    const Graph graph = tests::random_graph(random, tests::any_graph(random, {.max_nodes = 30}));
    const SeparatorTree separators = separator_tree(min_fill_decomposition(graph), graph.node_count());
    TwProgram program(graph, separators);
    core::Stopwatch watch{core::Limit()};
    std::int64_t length_before = TwProgram::kAnyLength;
    for (const std::int64_t k : {1, 2, 4, 8, 40}) {
      std::vector<NodeId> all, some;
      TwProgram::Trimmed everything{.k = k};
      const std::int64_t length = program.length(k, watch).value();
      everything.stays.assign(static_cast<std::size_t>(length), true);
      program.for_each_step(everything, [&](NodeId v) {
        all.push_back(v);
        return true;
      });
      REQUIRE(static_cast<std::int64_t>(all.size()) == length);
      CHECK(length <= length_before);  // a larger k must not give more steps
      length_before = length;

      const TwProgram::Trimmed trimmed = program.trim(k, watch).value();
      program.for_each_step(trimmed, [&](NodeId v) {
        some.push_back(v);
        return true;
      });
      const core::Schedule expected = core::drop_unread(graph, core::run_pinned_once(graph, {all}));
      REQUIRE(some == expected.steps);
      CHECK(trimmed.length == length);
      CHECK(trimmed.steps == expected.length());
      CHECK(trimmed.peak == core::reference::peak(graph, expected));
      CHECK(trimmed.cost == core::reference::cost(graph, expected));
    }
  }
}

TEST_CASE("recursion by bytes gives valid schedules; NoRemat where all fits, TWRemat(1) where nothing does") {
  tests::Random random(8);
  for (int i = 0; i < 1000; ++i) {
    auto shape = tests::any_graph(random, {.max_nodes = 30});
    shape.in_place = false;
    const Graph graph = tests::random_graph(random, shape);
    const SeparatorTree separators = separator_tree(min_fill_decomposition(graph), graph.node_count());
    TwProgram program(graph, separators);
    core::Stopwatch watch{core::Limit()};
    const core::Schedule baseline = core::baseline_schedule(graph);
    const std::int64_t total = core::reference::peak(graph, baseline);
    for (const std::int64_t bytes : {std::int64_t{0}, total / 4, total / 2, 3 * total / 4}) {
      const core::Schedule schedule{program.steps_within(bytes, 1 << 20, watch).value()};
      CHECK(core::reference::valid(graph, core::run_pinned_once(graph, schedule)));
      CHECK(schedule.length() <= program.length(1, watch).value());
    }
    std::int64_t sizes = 0;
    for (NodeId v = 0; v < graph.node_count(); ++v)
      sizes += graph.size(v) + std::max<std::int64_t>(graph.scratch(v), 0);
    CHECK(core::Schedule{program.steps_within(sizes, 1 << 20, watch).value()} == baseline);
    CHECK_FALSE(program.steps_within(sizes, 0, watch).has_value());
  }
}

TEST_CASE("recursion by bytes keeps to them, or to the least peak that the program knows of") {
  tests::Random random(11);
  int deeper = 0;
  for (int i = 0; i < 3000; ++i) {
    const Graph graph = tests::random_graph(random, {.max_nodes = 40, .several_outputs = i % 2 != 0});
    const TreeDecomposition decomposition = min_fill_decomposition(graph);
    const SeparatorTree separators = separator_tree(decomposition, graph, i % 3 == 0 ? Balance::bytes : Balance::bags);
    TwProgram program(graph, separators);
    core::Stopwatch watch{core::Limit()};
    const std::int64_t least = program.least_peak(watch);
    const std::int64_t baseline = tests::baseline_peak(graph);
    for (const std::int64_t bytes : {std::int64_t{0}, least, (least + baseline) / 2, baseline}) {
      const core::Schedule schedule{program.steps_within(bytes, 1 << 20, watch).value()};
      REQUIRE(core::reference::valid(graph, schedule));
      CHECK(core::reference::peak(graph, schedule) <= std::max(bytes, least));
    }
    deeper += least < baseline;
  }
  CHECK(deeper > 100);
}

TEST_CASE("what many nodes of one component want of it is found in time near-linear in them") {
  // A hub is read by 20,000 kept leaves and by the first node of a chain. A naive search would take time quadratic in
  // the number of leaves, but charge less work than that. So only the time of this test would show it.
  core::GraphBuilder builder;
  const auto add = [&](std::int64_t size, bool keep, std::vector<NodeId> inputs) {
    core::Node node{.size = size, .cost = 1, .keep = keep};
    for (const NodeId u : inputs) node.inputs.push_back(u);
    return builder.add(node);
  };
  const NodeId hub = add(1, false, {});
  for (int i = 0; i < 20'000; ++i) add(1, true, {hub});
  const NodeId big = add(1'000'000, false, {hub}), small = add(1, false, {big});
  add(1, false, {add(1'000'000, false, {hub}), small});
  const Graph graph = builder.build();
  const Solution solution = tw_remat(graph, {.k = 1});
  CHECK(core::evaluate(graph, solution.schedule).peak == solution.peak);
}

TEST_CASE("a k that is too long is refused before it starts, with one that is not") {
  const Graph graph = training_chain(200);
  TwRematOptions options{.k = 1, .most_steps = 500};
  const std::string message = tests::error_of([&] { tw_remat(graph, options); });
  CHECK(tests::contains(message, "above the limit of 500"));
  const auto at = message.find("from k = ");
  REQUIRE(at != std::string::npos);
  options.k = std::stoll(message.substr(at + 9));
  CHECK(options.k > 1);
  CHECK(tw_remat(graph, options).schedule.length() <= 500);
  --options.k;
  CHECK_THROWS_AS(tw_remat(graph, options), core::InputError);
}

TEST_CASE("the curve goes from NoRemat to TWRemat(1), each point that of its k") {
  tests::Random random(9);
  for (int i = 0; i < 100; ++i) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 5, .max_nodes = 40});
    const std::vector<TwPoint> points = tw_sweep(graph, {}, 8);
    REQUIRE(!points.empty());
    CHECK(points.front().steps == graph.node_count());
    CHECK(points.back().k == 1);
    CHECK(points.size() <= 10);
    for (const TwPoint& point : points) {
      TwRematOptions options{.k = point.k};
      const Solution retained = tw_remat(graph, options);
      options.retain = false;
      const Solution plain = tw_remat(graph, options);
      CHECK(point.peak == plain.peak);
      CHECK(point.cost == plain.cost);
      CHECK(point.steps == plain.schedule.length());
      CHECK(point.steps <= point.length);
      CHECK(point.retained_cost == retained.cost);
      CHECK(point.retained_steps <= point.steps);
      CHECK(retained.peak <= plain.peak);
      CHECK(retained.cost <= plain.cost);
    }
  }
}

TEST_CASE("costs whose sum is beyond int64 saturate, on the curve as everywhere") {
  core::GraphBuilder builder;
  for (int i = 0; i < 200; ++i) {
    core::Node node{.size = 1, .cost = (std::int64_t{1} << 62) / 200};
    for (int back = 1; back <= 3 && back <= i; ++back) node.inputs.push_back(i - back);
    builder.add(node);
  }
  const Graph graph = builder.build();
  const Solution solution = tw_remat(graph, {.k = 1});
  REQUIRE(solution.schedule.length() > 200);
  TwRematOptions plain = {.k = 1};
  plain.retain = false;
  const std::int64_t cost = tw_remat(graph, plain).cost;
  CHECK(cost == std::numeric_limits<std::int64_t>::max());
  CHECK(tw_sweep(graph, {}, 8).back().cost == cost);
  CHECK(tw_sweep(graph, {}, 8).back().retained_cost == solution.cost);
  CHECK(stream_tw_remat(graph, plain, [](std::span<const NodeId>) {}).cost == cost);
}

TEST_CASE("a schedule that is streamed is the same") {
  tests::Random random(10);
  for (int i = 0; i < 100; ++i) {
    const Graph graph = tests::random_graph(random, tests::any_graph(random));
    TwRematOptions options{.k = 1 + random.below(3), .retain = false};
    const Solution whole = tw_remat(graph, options);
    std::vector<NodeId> steps;
    const TwPoint point = stream_tw_remat(
        graph, options, [&](std::span<const NodeId> some) { steps.insert(steps.end(), some.begin(), some.end()); });
    CHECK(steps == whole.schedule.steps);
    CHECK(point.peak == whole.peak);
    CHECK(point.cost == whole.cost);
    CHECK(point.steps == whole.schedule.length());
  }
}

TEST_CASE("a graph without nodes has an empty schedule for every k") {
  const Graph graph;
  CHECK(tw_remat(graph, {.k = 1}).schedule.steps.empty());
  CHECK(tw_sweep(graph, {}, 8).size() == 1);
  CHECK(stream_tw_remat(graph, {.k = 1}, [](std::span<const NodeId> steps) { CHECK(steps.empty()); }).steps == 0);
}

TEST_CASE("the clean-up ends with the limit, and what it has done until then holds") {
  const Graph graph = training_chain(300);
  std::int64_t cost_before = core::reference::cost(graph, tw_remat(graph, {.k = 1}).schedule);
  for (const std::int64_t work : {20'000, 12'000, 10'000, 9'000, 8'000}) {
    TwRematOptions options{.k = 1};
    options.limit.work = work;
    const Solution solution = tw_remat(graph, options);
    if (solution.schedule.steps.empty()) continue;
    REQUIRE(core::reference::valid(graph, solution.schedule));
    CHECK(solution.cost >= cost_before);
    cost_before = solution.cost;
    CHECK(tw_remat(graph, options).schedule == solution.schedule);
  }
}

TEST_CASE("Theorem 5: on training chains the peak grows with the logarithm of the length") {
  for (const int n : {16, 64, 256, 1024}) {
    const Graph graph = training_chain(n);
    const int width = min_fill_decomposition(graph).width;
    const Solution solution = tw_remat(graph, {.k = 1});
    // Each level of the recursion needs at most M_in + (w + 1) M_max = 2 + (w + 1) bytes, where w is the width of the
    // tree decomposition. There are at most log2(bags) + 1 levels.
    const double levels = std::ceil(std::log2(2.0 * n)) + 1;
    CHECK(static_cast<double>(solution.peak) <= (2.0 + width + 1.0) * levels);
    CHECK(tests::baseline_peak(graph) >= n);
  }
}

TEST_CASE("keeping what fits never makes a schedule dearer") {
  tests::Random random(2);
  int cheaper = 0;
  for (int i = 0; i < 200; ++i) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 10, .max_nodes = 40});
    TwRematOptions options;
    options.budget = (tests::baseline_peak(graph) + core::peak_lower_bound(graph)) / 2;
    const Solution kept = tw_remat(graph, options);
    options.retain = false;
    const Solution plain = tw_remat(graph, options);
    CHECK((kept.status == Status::not_found) == (plain.status == Status::not_found));
    if (plain.status == Status::not_found) continue;
    CHECK(kept.cost <= plain.cost);
    cheaper += kept.cost < plain.cost;
  }
  CHECK(cheaper > 0);
}

}  // namespace
}  // namespace cairn::solvers::tw_remat_test
