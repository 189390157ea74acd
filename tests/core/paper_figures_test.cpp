#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/random_graph.h"

// Checks worked examples of three papers (Kumar et al., MOCCASIN, Jin et al.) with both the fast evaluator and the
// reference.
namespace cairn::core::paper_figures_test {
namespace {

using tests::build_graph;
using tests::make_node;

std::int64_t peak_of(const Graph& graph, const Schedule& schedule) {
  const Evaluation evaluation = evaluate(graph, schedule);
  REQUIRE(evaluation.valid());
  REQUIRE(evaluation.peak == reference::peak(graph, schedule));
  return evaluation.peak;
}

std::vector<std::int64_t> profile_of(const Graph& graph, const Schedule& schedule) {
  const std::vector<std::int64_t> profile = Evaluator(graph).profile(schedule.steps);
  REQUIRE(profile == reference::profile(graph, schedule));
  return profile;
}

TEST_CASE("Kumar et al., Figure 1: four units, or three with one recomputation") {
  enum : NodeId { A, B, C, D, E };
  // The figure's caption says that D reads two nodes while A stays in memory for E. It leaves open whether C reads A or
  // B, so the test tries both. The peak is the same.
  for (const NodeId input_of_c : {A, B}) {
    const Graph graph = build_graph({make_node("A", 1), make_node("B", 1, {A}), make_node("C", 1, {input_of_c}),
                                     make_node("D", 1, {B, C}), make_node("E", 1, {D, A})});
    const Schedule once{{A, B, C, D, E}};
    CHECK(peak_of(graph, once) == 4);
    CHECK(evaluate(graph, once).peak_step == 3);
    const Schedule twice{{A, B, C, D, A, E}};
    CHECK(peak_of(graph, twice) == 3);
    CHECK(evaluate(graph, twice).cost == 6);
    CHECK(evaluate(graph, twice).recomputed == 1);

    CHECK(reference::least_peak_without_recomputation(graph) == 4);
    CHECK(reference::least_peak(graph) == 3);
    const auto cheapest = reference::cheapest_within(graph, 3);
    REQUIRE(cheapest.has_value());
    CHECK(reference::cost(graph, *cheapest) == 6);
  }
}

TEST_CASE("MOCCASIN, Figures 2 and 3: peak three with node 1 computed twice") {
  // The edges are 1 -> 2 -> 3 -> 4 and 1 -> 4. In MOCCASIN, stage k has k events, in which nodes 1 to k may run. Node 1
  // is in memory from event 1 to event 3, in which node 2 runs. Node 1 is computed again in event 7, while node 3 is in
  // memory. The peak is reached in event 10, in which node 4 runs.
  const auto example = [](const std::vector<std::int64_t>& m) {
    return build_graph(
        {make_node("1", m[0]), make_node("2", m[1], {0}), make_node("3", m[2], {1}), make_node("4", m[3], {2, 0})});
  };
  const Schedule schedule{{0, 1, 2, 0, 3}};

  const Graph unit = example({1, 1, 1, 1});
  CHECK(peak_of(unit, schedule) == 3);
  CHECK(evaluate(unit, schedule).peak_step == 4);
  CHECK(evaluate(unit, schedule).recomputed == 1);

  // The sizes are different powers of ten, so a digit of each sum shows whether a node is in memory: node 1 in event 1,
  // nodes 1 and 2 in event 3, then 2 and 3, then 1 and 3 in event 7, and at last 1, 3 and 4.
  const Graph weighted = example({1, 10, 100, 1000});
  CHECK(profile_of(weighted, schedule) == std::vector<std::int64_t>{0, 1, 1, 11, 10, 110, 100, 101, 101, 1101, 0});
}

TEST_CASE("Jin et al., Example 2.2: schedules of equal peak are not equally good") {
  // The example gives node weights in the node-sum model: +10 and -9 for v2 and v3, +4 and -3 for v4 and v5 and also
  // for v6 and v7, +9 and -5 for v8 and v9. In this graph, the first node of a pair has an output of the positive
  // weight. The second node reads this output and leaves only the sum of both weights in memory, so its own output has
  // that size. Its scratch is minus that size, so that memory does not rise while the node runs.
  enum : NodeId { v1, v2, v3, v4, v5, v6, v7, v8, v9 };
  std::vector<Node> nodes{make_node("v1")};
  const auto add_pair = [&nodes](NodeId source, std::int64_t bytes, std::int64_t rest) {
    const auto up = static_cast<NodeId>(nodes.size());
    nodes.push_back(make_node(fmt::format("v{}", up + 1), bytes, {source}));
    nodes.push_back(make_node(fmt::format("v{}", up + 2), rest, {up}));
    nodes.back().scratch = -rest;
    nodes.back().keep = true;
  };
  add_pair(v1, 10, 1);
  add_pair(v3, 4, 1);
  add_pair(v3, 4, 1);
  add_pair(v1, 9, 4);
  const Graph graph = build_graph(nodes);
  REQUIRE(graph.node_count() == 9);

  const auto after_each = [&](const Schedule& schedule) {
    const std::vector<std::int64_t> profile = profile_of(graph, schedule);
    std::vector<std::int64_t> after;
    for (std::size_t i = 0; i < profile.size(); i += 2) after.push_back(profile[i]);
    return after;
  };
  // In the first two schedules, v8 and v9 run last. So the profile before them is that of the paper's graph G1, which
  // lacks v8 and v9. In addition, each profile here begins with a 0 for v1.
  using Profile = std::vector<std::int64_t>;
  CHECK(after_each({{v1, v2, v3, v4, v6, v5, v7, v8, v9}}) == Profile{0, 0, 10, 1, 5, 9, 6, 3, 12, 7});
  CHECK(after_each({{v1, v2, v3, v4, v5, v6, v7, v8, v9}}) == Profile{0, 0, 10, 1, 5, 2, 6, 3, 12, 7});
  CHECK(after_each({{v1, v2, v3, v8, v9, v4, v5, v6, v7}}) == Profile{0, 0, 10, 1, 10, 5, 9, 6, 10, 7});
  CHECK(peak_of(graph, {{v1, v2, v3, v8, v9, v4, v5, v6, v7}}) == 10);
  CHECK(reference::least_peak_without_recomputation(graph) == 10);

  // In the first order, v8 and v9 can run between v3 and v4 without a peak above 10. In the second order, the peak
  // exceeds 10 wherever v8 and v9 are inserted.
  const auto least_with_v8_v9_in = [&](const std::vector<NodeId>& order) {
    std::int64_t least = 1000;
    for (std::size_t i = 0; i <= order.size(); ++i) {
      for (std::size_t j = i; j <= order.size(); ++j) {
        Schedule schedule{{v1}};
        for (std::size_t k = 0; k <= order.size(); ++k) {
          if (k == i) schedule.steps.push_back(v8);
          if (k == j) schedule.steps.push_back(v9);
          if (k < order.size()) schedule.steps.push_back(order[k]);
        }
        least = std::min(least, peak_of(graph, schedule));
      }
    }
    return least;
  };
  CHECK(least_with_v8_v9_in({v2, v3, v4, v5, v6, v7}) == 10);
  CHECK(least_with_v8_v9_in({v2, v3, v4, v6, v5, v7}) > 10);
}

}  // namespace
}  // namespace cairn::core::paper_figures_test
