#include <string>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::core::evaluator_property_test {
namespace {

using tests::build_graph;
using tests::make_node;
using tests::Random;
using tests::random_graph;
using tests::random_invalid_schedule;
using tests::random_schedule;

void check_against_reference(const Graph& graph, Evaluator& evaluator, const Schedule& schedule) {
  const Evaluation evaluation = evaluator.evaluate(schedule);
  REQUIRE(reference::valid(graph, schedule));
  REQUIRE(evaluation.valid());
  REQUIRE(evaluation.defect == Defect{});
  REQUIRE(evaluation.peak == reference::peak(graph, schedule));
  REQUIRE(evaluation.peak_step == reference::peak_step(graph, schedule));
  REQUIRE(evaluation.cost == reference::cost(graph, schedule));
  REQUIRE(evaluation.recomputed == reference::recomputed(schedule));
  REQUIRE(evaluator.profile(schedule.steps) == reference::profile(graph, schedule));
}

/// Checks that the evaluator finds the same kind of defect at the same step as the definition. If several inputs or
/// nodes are missing, the evaluator may name any one of them.
void check_defect(const Graph& graph, Evaluator& evaluator, const Schedule& schedule) {
  const Defect expected = reference::find_defect(graph, schedule);
  REQUIRE(expected.kind != Defect::Kind::none);
  const Evaluation evaluation = evaluator.evaluate(schedule);
  const Defect found = evaluation.defect;
  REQUIRE_FALSE(evaluation.valid());
  REQUIRE(found.kind == expected.kind);
  REQUIRE(found.step == expected.step);
  if (found.kind == Defect::Kind::missing_node) {
    REQUIRE(graph.required(found.node));
    REQUIRE_FALSE(reference::stands(schedule, found.node, 0, schedule.length()));
  } else {
    REQUIRE(found.node == expected.node);
  }
  if (found.kind == Defect::Kind::missing_input) {
    bool reads = false;
    for (const ValueId x : graph.outputs(found.input)) reads = reads || reference::reads(graph, found.node, x);
    REQUIRE(reads);
    REQUIRE_FALSE(reference::stands(schedule, found.input, 0, found.step));
  }
  const std::string message = describe(graph, found);
  REQUIRE_FALSE(message.empty());
  REQUIRE(message.find('\n') == std::string::npos);
  if (found.kind != Defect::Kind::unknown_node) REQUIRE(message.find(graph.name(found.node)) != std::string::npos);
  REQUIRE_THROWS_AS(evaluator.profile(schedule.steps), InputError);
}

TEST_CASE("the evaluator agrees with the definitions") {
  tests::for_each_seed(40000, [](Random& random, std::uint64_t seed) {
    const Graph graph = random_graph(random, tests::any_graph(seed));
    // One evaluator evaluates several schedules of different lengths, one of them invalid. No call may affect later
    // calls.
    Evaluator evaluator(graph);
    const Schedule first = random_schedule(random, graph);
    check_against_reference(graph, evaluator, first);
    if (seed % 2 == 0) check_defect(graph, evaluator, random_invalid_schedule(random, graph));
    check_against_reference(graph, evaluator, random_schedule(random, graph));
    if (seed % 16 == 0) check_against_reference(graph, evaluator, first);
    REQUIRE(evaluate(graph, first).peak == reference::peak(graph, first));
  });
}

TEST_CASE("the evaluator names what is wrong with a schedule") {
  tests::for_each_seed(20000, [&](Random& random) {
    const Graph graph = random_graph(random, tests::any_graph(random));
    Evaluator evaluator(graph);
    check_defect(graph, evaluator, random_invalid_schedule(random, graph));
  });
}

TEST_CASE("an empty schedule is valid for the empty graph alone") {
  const Evaluation nothing = evaluate(Graph(), Schedule{});
  CHECK(nothing.valid());
  CHECK(nothing.peak == 0);
  CHECK(nothing.peak_step == -1);
  CHECK(nothing.cost == 0);
  CHECK(nothing.recomputed == 0);

  const Evaluation missing = evaluate(build_graph({make_node("a")}), Schedule{});
  CHECK(missing.defect == Defect{Defect::Kind::missing_node, -1, 0, kNoNode});
}

TEST_CASE("sums near 2^62 bytes are exact") {
  constexpr std::int64_t kHalf = std::int64_t{1} << 61;
  const Graph graph = build_graph({make_node("a", kHalf - 1, {}, 3), make_node("b", kHalf, {0}, 4)});
  const Schedule schedule{{0, 0, 1}};
  const Evaluation evaluation = evaluate(graph, schedule);
  CHECK(evaluation.peak == 2 * kHalf - 1);
  CHECK(evaluation.peak == reference::peak(graph, schedule));
  CHECK(evaluation.peak_step == 2);
  CHECK(evaluation.cost == 10);
}

}  // namespace
}  // namespace cairn::core::evaluator_property_test
