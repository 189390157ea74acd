// Tests the searches of solvers/fit/ on graphs with a link between the device's and the host's memory.
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "cairn/core/plan.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/timeline.h"
#include "cairn/solvers/common/support/admissible.h"
#include "cairn/solvers/fit/curve.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/link_worth.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/fit/solve.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/transfer_instance.h"

namespace cairn::tests::link_test {
namespace {

constexpr std::int64_t kAnyBytes = std::numeric_limits<std::int64_t>::max();

core::Graph linked_graph(std::uint64_t seed, std::int64_t host_budget = kAnyBytes) {
  Random random(seed);
  const core::Graph graph = random_graph(random, any_graph(seed));
  return graph.with_host_memory(core::HostMemory{{.bytes_per_second = 5'000'000'000}, host_budget});
}

void check_planned(const core::Graph& graph, const fit::PlannedSchedule& found) {
  REQUIRE(found.plan);
  CHECK(core::evaluate(graph, found.schedule).valid());
  CHECK(core::check_plan(graph, found.schedule, *found.plan).empty());
  CHECK(found.plan->host_bytes <= graph.host_memory()->budget);
}

const solvers::SolveOptions kSearch{.limit = {.work = 20'000}};

/// Returns a chain whose first value has 100 bytes and is also read by the last node. `stays` forbids to move this
/// value.
core::Graph held_graph(bool stays) {
  core::GraphBuilder builder("held");
  const core::NodeId first = builder.add({.name = "a", .cost = 50, .outputs = {{.size = 100, .stays = stays}}});
  core::NodeId last = first;
  for (int k = 0; k < 3; ++k) last = builder.add({.name = "", .size = 40, .cost = 50, .inputs = {last}});
  builder.add({.name = "end", .size = 10, .cost = 50, .keep = true, .inputs = {first, last}});
  return builder.build();
}

/// Returns a schedule of held_graph() in which the first value is on the host between its two reads.
core::Schedule moving_first_value() {
  core::Schedule schedule;
  schedule.steps = {0, 1, 2, 3, 4};
  schedule.transfers.evicts = {{0, 0, 1, 2}};
  schedule.transfers.fetches = {{0, 3, 4}};
  return schedule;
}

}  // namespace

TEST_CASE("with a link, the least budget is never higher, and its plans fit on both sides", "[link]") {
  int lower = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    const fit::Problem linked(linked_graph(seed, seed % 2 == 0 ? kAnyBytes : 40));
    const fit::Problem alone(linked.graph.with_host_memory({}));
    const fit::LeastBudgetOptions options{.search = kSearch, .plan = {.alignment = 1}};
    const solvers::SolverInfo& solver = solvers::find_solver("auto");
    const fit::LeastBudget with = fit::find_least_budget(linked, linked, solver, options);
    const fit::LeastBudget without = fit::find_least_budget(alone, alone, solver, options);
    check_planned(linked.graph, with);
    CHECK(with.memory() <= without.memory());
    CHECK(with.bound.value == linked.plan_bound());
    lower += with.memory() < without.memory() ? 1 : 0;
  }
  CHECK(lower > 0);
}

TEST_CASE("what a link saves at no cost is a schedule of the baseline's cost", "[link]") {
  int saved = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    const fit::Problem problem(linked_graph(seed));
    // The only schedule with recomputation that is given needs the least memory possible, but costs more than twice as
    // much as the baseline.
    const std::vector<solvers::Tradeoff> recomputed{{problem.lower_bound, 2 * problem.baseline.cost + 1}};
    const fit::LinkWorth worth =
        fit::link_worth(problem, problem, recomputed, solvers::PlanOptions{.alignment = 1}, {});
    check_planned(problem.graph, worth.free);
    CHECK(worth.free.schedule.steps == core::baseline_schedule(problem.graph).steps);
    CHECK(worth.free.evaluation.cost == problem.baseline.cost);
    CHECK(worth.free.evaluation.waiting == 0);
    if (worth.recompute_below) CHECK(*worth.recompute_below == problem.lower_bound);
    saved += worth.free.schedule.transfers.empty() ? 0 : 1;
  }
  CHECK(saved > 0);
}

TEST_CASE("recomputation pays below the largest memory at which it costs less than waiting", "[link]") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    const core::HostMemory slow{{.bytes_per_second = 1}};
    const fit::Problem problem(linked_graph(seed).with_host_memory(slow));
    const std::int64_t low = problem.lower_bound, most = problem.baseline.peak, cost = problem.baseline.cost;
    if (most - low < 3) continue;
    // Over such a slow link, every schedule with transfers costs more than the second entry. The third entry is the
    // baseline. So the result must be the memory of the second entry.
    const std::vector<solvers::Tradeoff> recomputed{{low, 3 * cost + 9}, {most - 1, cost + 1}, {most, cost}};
    const fit::LinkWorth worth =
        fit::link_worth(problem, problem, recomputed, solvers::PlanOptions{.alignment = 1}, {});
    CHECK(worth.recompute_below == most - 1);
  }
}

TEST_CASE("a sufficient host budget is above the one that is too small, and a search within it succeeds", "[link]") {
  int told = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    const core::Graph graph = linked_graph(seed, 1);
    fit::Problem problem(graph);
    problem.budget = (problem.baseline.peak + problem.lower_bound) / 2;
    const std::vector<core::Schedule> starts{core::baseline_schedule(graph)};
    const fit::LeastBudgetOptions options{.search = kSearch, .plan = {.alignment = 1}};
    const std::optional<std::int64_t> bytes = fit::sufficient_host_budget(problem, problem, starts, options);
    if (!bytes) continue;
    ++told;
    CHECK(*bytes > 1);
    fit::Problem larger(graph.with_host_memory(core::HostMemory{graph.host_memory()->link, *bytes}));
    larger.budget = problem.budget;
    const fit::Fit found = fit::fit_to_budget(larger, larger, solvers::find_solver("auto"),
                                              {.search = kSearch, .plan = {.alignment = 1}, .secure_share = 1});
    REQUIRE(found.fits());
    check_planned(larger.graph, fit::PlannedSchedule(larger.graph, found.solution.schedule, found.plan));
  }
  CHECK(told > 5);
}

TEST_CASE("under a work limit, transfers are found for peaks even if recomputation uses up its own", "[link]") {
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    fit::Problem problem(linked_graph(seed));
    problem.budget = (problem.baseline.peak + problem.lower_bound) / 2;
    const fit::Task task{.problem = problem, .objective = fit::Objective::within_peak};
    const solvers::SolveOptions little{.limit = {.work = 500}};
    const fit::Answer answer = fit::search(task, solvers::find_solver("auto"), little);
    const solvers::Solution& solution = answer.found.solution;
    if (!answer.success) continue;
    CHECK(solution.peak <= *problem.budget);
    CHECK(solution.cost >= solution.cost_bound.value);
    moved += solution.schedule.transfers.empty() ? 0 : 1;
  }
  CHECK(moved > 3);
}

TEST_CASE("with a link, every answer is in the scope that was asked for, and not below its bound", "[link]") {
  int moved = 0, checked = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const auto instance = random_transfer_instance(random, 6, 10);
    if (!instance) continue;
    fit::Problem problem(instance->graph.with_host_memory(core::HostMemory{instance->link}));
    problem.budget = random.between(problem.lower_bound, problem.baseline.peak);
    for (const solvers::Scope scope :
         {solvers::Scope{solvers::OrderRule::input, 0}, solvers::Scope{solvers::OrderRule::free, 1},
          solvers::Scope{solvers::OrderRule::input, 2}}) {
      const char* const names[] = {"auto", "greedy", "chen"};
      const solvers::SolverInfo& solver = solvers::find_solver(names[seed % 3]);
      if (!solver.honours(scope)) continue;
      const fit::Task task{.problem = problem, .objective = fit::Objective::within_peak};
      const fit::Answer answer = fit::search(task, solver, {.scope = scope, .limit = {.work = 20'000}});
      const solvers::Solution& solution = answer.found.solution;
      if (!answer.success) continue;
      CHECK(scope.contains(problem.graph, solution.schedule));
      CHECK(solution.cost >= solution.cost_bound.value);
      ++checked;
      moved += solution.schedule.transfers.empty() ? 0 : 1;
    }
  }
  CHECK(checked > 700);
  CHECK(moved > 100);
}

TEST_CASE("a start that moves what may not move, or too much, is not the answer", "[link]") {
  for (const bool stays : {false, true}) {
    const core::Graph graph = held_graph(stays).with_host_memory(
        core::HostMemory{{.bytes_per_second = 1'000'000'000'000}, stays ? kAnyBytes : 99});
    const core::Schedule start = moving_first_value();
    REQUIRE(core::evaluate(graph, start).valid());
    CHECK_FALSE(solvers::admissible(graph, {}, start));
    fit::Problem problem(graph);
    problem.budget = core::evaluate(graph, start).peak;
    solvers::SolveOptions search = kSearch;
    search.start = &start;
    for (const fit::Objective objective : {fit::Objective::within_peak, fit::Objective::within_budget}) {
      fit::Task task{.problem = problem, .objective = objective};
      task.rounded = task.problem;
      const fit::Answer answer = fit::search(task, solvers::find_solver("auto"), search);
      if (answer.success) CHECK(solvers::admissible(graph, {}, answer.found.solution.schedule));
    }
    fit::CurveOptions curve{.fit = {.search = search}, .peak_only = true, .budgets = {*problem.budget}};
    for (const fit::CurvePoint& point : fit::pareto_curve(problem, solvers::find_solver("auto"), curve).points) {
      if (point.known()) CHECK(solvers::admissible(graph, {}, point.schedule));
    }
  }
  const core::Graph alone = held_graph(false);
  CHECK_FALSE(solvers::admissible(alone, {}, moving_first_value()));
}

}  // namespace cairn::tests::link_test
