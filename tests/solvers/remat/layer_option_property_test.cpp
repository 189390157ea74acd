// Tests options of layers, and GroupGraph, i.e. the graph of a single layer, against the definitions. A layer consists
// of forward nodes and their backward nodes, and an option is one way to run a layer.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/solvers/registry.h"
#include "cairn/solvers/remat/hiremate/group_graph.h"
#include "cairn/solvers/remat/hiremate/level.h"
#include "cairn/solvers/remat/rotor/layers.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/remat/level/cases.h"
#include "cairn/tests/solvers/remat/level/passes.h"
#include "cairn/tests/solvers/remat/training_graphs.h"
#include "cairn/tests/support/seeds.h"
#include "cairn/tests/support/show.h"

namespace cairn::tests::level::layer_option_property_test {
namespace {

using core::Schedule;
using solvers::find_solver;
using solvers::GroupGraph;

TEST_CASE("what an option of a layer needs, by the definition", "[level]") {
  tests::for_each_seed(1500, [](Random& random) {
    const Case level = random_case(random, true, false, 1'000'000'000);
    const LayerOption option = random_option(random, level.graph, level.whole);
    CAPTURE(show(level), tests::show(option.forward), tests::show(option.backward));
    const OptionNeeds literal = Passes(level.graph, level.whole, option).needs();
    const OptionNeeds needs = needs_of(level.graph, level.whole, option);
    REQUIRE(needs.cost == literal.cost);
    REQUIRE(needs.between == literal.between);
    REQUIRE(needs.peak == literal.peak);
  });
}

/// Converts schedules of a layer's own graph (GroupGraph) into options of the layer, and checks that these are valid
/// and need what the schedules need. The schedules are random or come from solvers.
TEST_CASE("schedules of a layer as a graph of its own are options of the layer", "[level]") {
  int within = 0, recomputing = 0;
  tests::for_each_seed(1500, [&](Random& random) {
    tests::TrainingOptions kind{.forward = tests::any_graph(random, {.max_nodes = 9})};
    kind.without_backward = random.chance(20) ? 100 : random.chance(50) ? 0 : 30;
    const Graph graph = tests::training_graph(random, kind);
    const std::vector<Layer> layers = layers_of(graph);
    const auto count = static_cast<std::int64_t>(layers.size());
    const std::int64_t begin = random.below(count), end = random.between(begin + 1, count);
    std::vector<const Layer*> before, inside, after;
    for (std::int64_t i = 0; i < count; ++i) (i < begin ? before : i < end ? inside : after).push_back(&layers[i]);
    const Layer first = join(before), layer = join(inside), last = join(after);
    CAPTURE(tests::show(graph), tests::show(layer.forward), tests::show(layer.backward));
    const auto in_whole = [&](const LayerOption& option) {
      Schedule whole;
      for (const Steps* steps :
           {&first.forward, &option.forward, &last.forward, &last.backward, &option.backward, &first.backward})
        append(whole.steps, *steps);
      return whole;
    };
    const bool keeps = std::any_of(layer.forward.begin(), layer.forward.end(), [&](NodeId v) { return graph.keep(v); });
    const GroupGraph alone(graph, layer);
    const OptionNeeds once = Passes(graph, layer, {layer.forward, layer.backward}).needs();
    const auto check = [&](const LayerOption& option) {
      CAPTURE(tests::show(option.forward), tests::show(option.backward));
      for (const NodeId v : option.forward) REQUIRE_FALSE(graph.backward(v));
      REQUIRE(Passes(graph, layer, option).valid());
      REQUIRE(reference::valid(graph, in_whole(option)));
    };
    for (int k = 0; k < 3; ++k) {
      const std::int64_t peak = random.between(once.peak / 3, once.peak), between = random.between(0, once.between);
      const Graph limited = alone.within(peak, between);
      for (const char* name : {"none", "greedy", "tw", ""}) {
        CAPTURE(name, peak, between);
        Schedule found = tests::random_schedule(random, limited);
        if (name[0] != '\0') {
          found = find_solver(name).solve(limited, {.budget = peak}).schedule;
        }
        if (found.steps.empty()) continue;
        const core::Evaluation measured = core::evaluate(limited, found);
        REQUIRE(measured.valid());
        const LayerOption option = alone.option(found);
        check(option);
        const OptionNeeds needs = needs_of(graph, layer, option);
        REQUIRE(needs.cost == measured.cost);
        if (measured.peak > peak) continue;
        ++within;
        recomputing += needs.cost > once.cost;
        REQUIRE(Passes(graph, layer, option).between_beside_rest() <= between);
        // In the layer's own graph, a kept value need not stay in memory if it is made again later. In an option, it
        // must stay, so the option's peak can be higher.
        if (!keeps) REQUIRE(needs.peak <= peak);
      }
    }
  });
  CHECK(within > 500);
  CHECK(recomputing > 50);
}

}  // namespace
}  // namespace cairn::tests::level::layer_option_property_test
