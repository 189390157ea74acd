#include <algorithm>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/schedules.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::core::lifetimes_property_test {
namespace {

using tests::Random;
using tests::random_graph;
using tests::random_invalid_schedule;

TEST_CASE("lifetimes and recomputed steps agree with the definitions") {
  tests::for_each_schedule(10000, [&](Random&, const Graph& graph, const Schedule& schedule) {
    REQUIRE(lifetimes(graph, schedule) == reference::lifetimes(graph, schedule));
    REQUIRE(recomputed_steps(graph, schedule) == reference::recomputed(schedule));
  });
}

TEST_CASE("the profile is the sum of the lifetimes") {
  tests::for_each_schedule(2000, [&](Random&, const Graph& graph, const Schedule& schedule) {
    const std::vector<std::int64_t> profile = Evaluator(graph).profile(schedule.steps);
    for (std::int64_t i = 0; i < schedule.length(); ++i) {
      std::int64_t during = graph.scratch(schedule.steps[static_cast<std::size_t>(i)]), after = 0;
      for (const Lifetime& life : lifetimes(graph, schedule)) {
        if (life.first <= i && i <= life.last) during += graph.value_size(graph.value({life.node, life.output}));
        if (life.first <= i && i < life.last) after += graph.value_size(graph.value({life.node, life.output}));
      }
      REQUIRE(profile[static_cast<std::size_t>(2 * i + 1)] == during);
      REQUIRE(profile[static_cast<std::size_t>(2 * i + 2)] == after);
    }
  });
}

TEST_CASE("dropping unread occurrences agrees with the definition") {
  std::int64_t dropped_steps = 0;
  tests::for_each_schedule(10000, [&](Random&, const Graph& graph, const Schedule& schedule) {
    const Schedule dropped = drop_unread(graph, schedule);
    REQUIRE(dropped == reference::drop_unread(graph, schedule));
    REQUIRE(reference::valid(graph, dropped));
    REQUIRE(reference::peak(graph, dropped) <= reference::peak(graph, schedule));
    REQUIRE(reference::cost(graph, dropped) <= reference::cost(graph, schedule));
    REQUIRE(drop_unread(graph, dropped) == dropped);
    dropped_steps += schedule.length() - dropped.length();
  });
  CHECK(dropped_steps > 10000);
}

/// Drops, one after the other, steps with kIfRead that no remaining step reads and that need not run.
std::vector<std::uint8_t> literally_cleared(const Graph& graph, const std::vector<NodeId>& steps,
                                            std::vector<std::uint8_t> marks) {
  const auto is_needed = [&](std::size_t i) {
    for (std::size_t j = i + 1; j < steps.size(); ++j) {
      if (marks[j] == kDropped) continue;
      for (const NodeId u : graph.predecessors(steps[j])) {
        if (u == steps[i]) return true;
      }
      if (steps[j] == steps[i]) return false;  // made again before anything reads it
    }
    return graph.required(steps[i]);
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (marks[i] != kIfRead || is_needed(i)) continue;
      marks[i] = kDropped;
      changed = true;
    }
  }
  return marks;
}

TEST_CASE("clear_unread drops what is not read, and heeds steps that are dropped already or always stay") {
  std::int64_t dropped = 0;
  tests::for_each_schedule(3000, [&](Random& random, const Graph& graph, const Schedule& schedule) {
    std::vector<std::uint8_t> marks(schedule.steps.size());
    for (std::uint8_t& mark : marks) mark = random.chance(70) ? kIfRead : random.chance(50) ? kDropped : kAlwaysKept;
    const std::vector<std::uint8_t> expected = literally_cleared(graph, schedule.steps, marks);
    for (std::size_t i = 0; i < marks.size(); ++i) dropped += marks[i] == kIfRead && expected[i] == kDropped ? 1 : 0;
    clear_unread(graph, schedule.steps, marks);
    REQUIRE(marks == expected);
  });
  CHECK(dropped > 3000);
}

TEST_CASE("lifetimes of an invalid schedule are an error") {
  tests::for_each_seed(1000, [&](Random& random) {
    const Graph graph = random_graph(random, tests::any_graph(random));
    REQUIRE_THROWS_AS(lifetimes(graph, random_invalid_schedule(random, graph)), InputError);
  });
}

TEST_CASE("the baseline is the input order, each node once") {
  tests::for_each_seed(1000, [&](Random& random) {
    const Graph graph = random_graph(random, tests::any_graph(random));
    const Schedule baseline = baseline_schedule(graph);
    REQUIRE(std::equal(baseline.steps.begin(), baseline.steps.end(), graph.input_order().begin(),
                       graph.input_order().end()));
    REQUIRE(reference::valid(graph, baseline));
    REQUIRE(baseline.length() == graph.node_count());
  });
}

}  // namespace
}  // namespace cairn::core::lifetimes_property_test
