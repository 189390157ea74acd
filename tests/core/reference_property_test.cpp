#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

// Tests the reference itself: its searches over sets of nodes must agree with trying every order and every schedule.
namespace cairn::core::reference_property_test {
namespace {

using tests::Random;
using tests::random_graph;
using tests::random_schedule;

std::int64_t least_peak_of_all_orders(const Graph& graph) {
  Schedule order{tests::numbers_below(graph.node_count())};
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  do {
    if (reference::valid(graph, order)) least = std::min(least, reference::peak(graph, order));
  } while (std::next_permutation(order.steps.begin(), order.steps.end()));
  return least;
}

/// Calls visit(schedule) for every valid schedule of at most `length` steps that begins with the steps in `schedule`.
template <class Visit>
void for_each_schedule(const Graph& graph, std::int64_t length, Schedule& schedule, const Visit& visit) {
  if (reference::valid(graph, schedule)) visit(schedule);
  if (schedule.length() == length) return;
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    const auto inputs = graph.inputs(node);
    const auto computed = [&](NodeId input) { return reference::stands(schedule, input, 0, schedule.length()); };
    if (!std::all_of(inputs.begin(), inputs.end(), computed)) continue;
    schedule.steps.push_back(node);
    for_each_schedule(graph, length, schedule, visit);
    schedule.steps.pop_back();
  }
}

TEST_CASE("the least peak over sets is the least over all orders") {
  tests::for_each_seed(300, [&](Random& random) {
    const Graph graph = random_graph(random, {.max_nodes = 6});
    REQUIRE(reference::least_peak_without_recomputation(graph) == least_peak_of_all_orders(graph));
  });
}

TEST_CASE("the cheapest schedule over sets is the cheapest of all schedules") {
  constexpr std::int64_t kLength = 6;
  tests::for_each_seed(150, [](Random& random) {
    const Graph graph = random_graph(random, {.max_nodes = 4});
    const std::int64_t budget =
        random.between(reference::peak_lower_bound(graph), reference::least_peak_without_recomputation(graph));
    std::int64_t least_cost = std::numeric_limits<std::int64_t>::max();
    Schedule schedule;
    for_each_schedule(graph, kLength, schedule, [&](const Schedule& candidate) {
      if (reference::peak(graph, candidate) > budget) return;
      least_cost = std::min(least_cost, reference::cost(graph, candidate));
    });
    const auto found = reference::cheapest_within(graph, budget);
    if (!found) {
      REQUIRE(least_cost == std::numeric_limits<std::int64_t>::max());
      return;
    }
    REQUIRE(reference::valid(graph, *found));
    REQUIRE(reference::peak(graph, *found) <= budget);
    REQUIRE(reference::cost(graph, *found) <= least_cost);
    if (found->length() <= kLength) REQUIRE(reference::cost(graph, *found) == least_cost);
  });
}

TEST_CASE("recomputation lowers the least peak, never below the bound") {
  int lowered = 0;
  tests::for_each_seed(200, [&](Random& random) {
    const Graph graph = random_graph(random, {.min_nodes = 4, .max_nodes = 7});
    const std::int64_t least = reference::least_peak(graph);
    const std::int64_t in_order = reference::least_peak_without_recomputation(graph);
    REQUIRE(reference::peak_lower_bound(graph) <= least);
    REQUIRE(least <= in_order);
    REQUIRE(least <= reference::peak(graph, random_schedule(random, graph)));
    lowered += least < in_order;
  });
  CHECK(lowered > 0);
}

TEST_CASE("the searches refuse graphs that are too large for them") {
  const Graph graph = tests::build_graph(std::vector<Node>(21));
  CHECK_THROWS_AS(reference::least_peak_without_recomputation(graph), std::invalid_argument);
  CHECK_THROWS_AS(reference::cheapest_within(graph, 0), std::invalid_argument);
}

}  // namespace
}  // namespace cairn::core::reference_property_test
