// Tests that searches for schedules plan with PlanOptions::overlap_steps, and count the additional bytes of such plans.
#include "cairn/solvers/fit/decision.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/registry.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::overlap_steps_test {
namespace {

solvers::SolveOptions work(std::int64_t units) { return {.limit = {.work = units}}; }

bool keeps(const core::Graph& graph, const core::Schedule& schedule, const core::Plan& plan, std::int64_t steps) {
  return fit::plan_at(graph, schedule, core::offsets_of(plan), plan.alignment, steps).has_value();
}

}  // namespace

TEST_CASE("overlap_steps: the answer to every objective has a plan that keeps them") {
  std::int64_t dearer = 0, met = 0;
  tests::for_each_seed(12, [&](tests::Random& random) {
    const core::Graph graph = tests::random_graph(random, tests::any_graph(random, {.min_nodes = 15, .max_nodes = 40}));
    const std::int64_t steps = random.between(1, 4), alignment = random.chance(50) ? 1 : 16;
    const solvers::SolverInfo& solver = solvers::find_solver("auto");
    std::optional<std::int64_t> budget;
    for (const auto objective : {fit::Objective::least_budget, fit::Objective::within_budget, fit::Objective::knee,
                                 fit::Objective::least_peak}) {
      const bool limited = objective == fit::Objective::within_budget;
      if (limited && budget.value_or(0) == 0) continue;
      const fit::Task task{
          fit::Problem(graph, limited ? std::to_string(*budget) : ""), objective, alignment, {}, steps};
      const fit::Answer answer = fit::search(task, solver, work(200'000));
      REQUIRE(answer.success);
      const core::Schedule& schedule = answer.found.solution.schedule;
      const core::Plan& plan = *answer.found.plan;
      INFO(fit::to_string(objective));
      CHECK(keeps(graph, schedule, plan, steps));
      if (objective == fit::Objective::least_budget) budget = plan.bytes;
      if (limited) CHECK(plan.bytes <= *budget);
      met += limited ? 1 : 0;
      const fit::Decision decision = fit::decide_on(graph, "auto", schedule, task.planning(), plan);
      CHECK(decision.executed_plan().bytes == decision.memory());
      CHECK(decision.overlap_steps == steps);
      CHECK(decision.overlap_bytes >= 0);
      dearer += decision.overlap_bytes > 0 ? 1 : 0;
    }
  });
  CHECK(dearer > 3);
  CHECK(met > 3);
}

TEST_CASE("overlap_steps: a known plan that does not keep them is not used") {
  std::int64_t planned_again = 0;
  tests::for_each_seed(50, [&](tests::Random& random) {
    const core::Graph graph = tests::random_graph(random);
    const core::Schedule schedule = tests::random_schedule(random, graph);
    const core::Plan close = solvers::plan_memory(graph, schedule, {.limit = {.work = 0}});
    const solvers::PlanOptions options{.overlap_steps = 2, .limit = {.work = 0}};
    const fit::Decision decision =
        fit::decide_on_given(fit::Problem(graph), "given", schedule, core::offsets_of(close), options);
    CHECK(keeps(graph, schedule, decision.executed_plan(), 2));
    planned_again += decision.executed_plan().buffers == close.buffers ? 0 : 1;
    CHECK(fit::decide_on_given(fit::Problem(graph), "given", schedule, core::offsets_of(close), {}).plan->buffers ==
          close.buffers);
  });
  CHECK(planned_again > 10);
}

}  // namespace cairn::overlap_steps_test
