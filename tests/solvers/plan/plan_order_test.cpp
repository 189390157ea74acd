#include <algorithm>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::plan_order_test {
namespace {

std::vector<core::NodeId> sorted(std::vector<core::NodeId> steps) {
  std::sort(steps.begin(), steps.end());
  return steps;
}

TEST_CASE("another order of the same steps may have a plan that fits, and is no dearer") {
  int better = 0;
  tests::for_each_seed(600, [&](tests::Random& random) {
    const core::Graph graph =
        tests::random_graph(random, {.min_nodes = 20, .max_nodes = 60, .several_outputs = random.chance(50)});
    const core::Schedule schedule = tests::random_schedule(random, graph);
    PlanOptions options{.alignment = random.chance(50) ? 1 : 8, .limit = {.work = 3'000'000}};
    const core::Evaluation before = core::evaluate(graph, schedule);
    PlanOptions part = options;  // the first 30% of the work, in which the given order is planned
    part.limit = core::Stopwatch(options.limit).share(0.3);
    const PlanSolution as_it_is = find_plan(plan_problem(graph, schedule), part);
    const PlannedOrder found = plan_some_order(graph, schedule, options);
    const core::Evaluation after = core::evaluate(graph, found.schedule);
    REQUIRE(after.valid());
    REQUIRE(after.cost == before.cost);
    REQUIRE(sorted(found.schedule.steps) == sorted(schedule.steps));
    REQUIRE(core::check_plan(graph, found.schedule, found.plan.plan) == "");
    REQUIRE(found.plan.plan.bytes <= as_it_is.plan.bytes);
    const core::Graph aligned = core::align_sizes(graph, options.alignment);
    REQUIRE(core::evaluate(aligned, found.schedule).peak <= core::evaluate(aligned, schedule).peak);
    if (found.plan.plan.bytes < as_it_is.plan.bytes) {
      better += found.schedule.steps != schedule.steps;
    } else if (as_it_is.status == Status::optimal && as_it_is.plan.bytes == as_it_is.plan.lower_bound) {
      REQUIRE(found.schedule.steps == schedule.steps);  // because the plan of the given order reaches its lower bound
    }
  });
  CHECK(better > 0);
}

}  // namespace
}  // namespace cairn::solvers::plan_order_test
