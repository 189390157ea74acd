#include "cairn/solvers/fit/least_budget.h"

#include "cairn/models/registry.h"
#include "cairn/pipeline/request.h"
#include "cairn/report/support/words.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/fit/solve.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::least_budget_test {
namespace {

const solvers::SolverInfo& all_solvers() { return solvers::find_solver("auto"); }

fit::LeastBudget least_of(const core::Graph& graph, std::int64_t alignment, solvers::SolveOptions search,
                          std::int64_t enough = 0) {
  const fit::Problem problem(graph);
  return fit::find_least_budget(problem, problem.rounded_up(alignment), all_solvers(),
                                {.search = std::move(search), .plan = {.alignment = alignment}, .enough = enough});
}

solvers::SolveOptions work(std::int64_t units) { return {.limit = {.work = units}}; }

/// Checks by the definitions that the schedule is valid and has the claimed peak and cost. Checks also that the plan
/// belongs to the schedule, and that the lower bound is at most the plan's height.
void check_witness(const core::Graph& graph, const fit::LeastBudget& least) {
  REQUIRE(core::reference::valid(graph, least.schedule));
  CHECK(core::reference::peak(graph, least.schedule) == least.evaluation.peak);
  CHECK(core::reference::cost(graph, least.schedule) == least.evaluation.cost);
  REQUIRE(least.plan);
  CHECK(least.plan->bytes == least.memory());
  CHECK(core::check_plan(graph, least.schedule, *least.plan).empty());
  CHECK(least.bound.value <= least.memory());
}

}  // namespace

TEST_CASE("the least budget has a witness and is never below the least peak") {
  int proved = 0, fitting = 0;
  tests::for_each_seed(300, [&](tests::Random& random) {
    const core::Graph graph = tests::random_graph(random, tests::any_graph(random, {.max_nodes = 7}));
    const std::int64_t alignment = random.chance(50) ? 1 : 16;
    const fit::LeastBudget least = least_of(graph, alignment, work(200'000));
    check_witness(graph, least);
    const core::Graph rounded = core::align_sizes(graph, alignment);
    const std::int64_t lowest = core::reference::least_peak(rounded) - fit::Problem(rounded).plan_slack;
    CHECK(least.memory() >= lowest);
    CHECK(least.bound.value <= lowest);
    if (least.proved()) CHECK(least.memory() == lowest);
    if (graph.node_count() > 0) fitting += least.memory() < core::reference::least_peak(rounded) ? 1 : 0;
    proved += least.proved() ? 1 : 0;
  });
  CHECK(proved > 100);
  // Some plans are lower than the peak of every schedule, because peaks can count in-place nodes twice.
  CHECK(fitting > 0);
}

TEST_CASE("the least budget is the same when it is asked for again, and solving at it succeeds") {
  tests::for_each_seed(20, [&](tests::Random& random) {
    const core::Graph graph = tests::random_graph(random, tests::any_graph(random, {.min_nodes = 15, .max_nodes = 40}));
    const std::int64_t alignment = random.chance(50) ? 1 : 256;
    solvers::SolveOptions search = work(400'000);
    if (random.chance(25)) search.scope.order = solvers::OrderRule::input;
    const fit::LeastBudget least = least_of(graph, alignment, search);
    check_witness(graph, least);
    CHECK(search.scope.contains(graph, least.schedule));
    const fit::LeastBudget again = least_of(graph, alignment, search);
    CHECK(again.memory() == least.memory());
    CHECK(again.schedule.steps == least.schedule.steps);
    CHECK(least_of(graph, alignment, search, least.memory()).memory() <= least.memory());

    const fit::Problem problem(graph, std::to_string(std::max<std::int64_t>(least.memory(), 1)));
    const fit::Task task{problem, fit::Objective::within_budget, alignment, {}};
    const fit::Answer answer = fit::search(task, all_solvers(), search);
    REQUIRE(answer.success);
    CHECK(answer.found.plan->bytes <= std::max<std::int64_t>(least.memory(), 1));
  });
}

TEST_CASE("no budget far below the least one that is known is met") {
  constexpr std::int64_t kUnits = 4'000'000;
  constexpr double kNear = 1.02;
  for (const char* name : {"unet", "resnet50"}) {
    const core::Graph graph = models::build_model(name, {});
    const fit::LeastBudget least = least_of(graph, 256, work(kUnits));
    for (const double share : {0.97, 0.93, 0.88}) {
      INFO(name << " " << share);
      const auto budget = static_cast<std::int64_t>(share * static_cast<double>(least.memory()));
      const fit::Task task{fit::Problem(graph, std::to_string(budget)), fit::Objective::within_budget, 256, {}};
      const fit::Answer answer = fit::search(task, all_solvers(), work(kUnits));
      if (answer.success)
        CHECK(static_cast<double>(least.memory()) <= kNear * static_cast<double>(answer.found.plan->bytes));
    }
  }
}

TEST_CASE("the lowest schedule is of the least peak that was met") {
  tests::for_each_seed(20, [&](tests::Random& random) {
    const core::Graph graph = tests::random_graph(random, tests::any_graph(random, {.max_nodes = 30}));
    const fit::LeastBudget least = least_of(graph, 1, work(200'000));
    REQUIRE(core::reference::valid(graph, least.lowest));
    CHECK(core::reference::peak(graph, least.lowest) <= least.evaluation.peak);
  });
}

TEST_CASE("what is enough ends the search for the least budget, and no sooner") {
  const core::Graph graph = models::build_model("unet", {.values = {{"image", 16}, {"width", 2}, {"depth", 2}}});
  const fit::LeastBudget least = least_of(graph, 256, work(2'000'000));
  const std::int64_t baseline = fit::Problem(graph).rounded_up(256).baseline.peak;
  REQUIRE(least.memory() < baseline);
  for (const std::int64_t enough : {baseline, (baseline + least.memory()) / 2, least.memory()}) {
    INFO(enough);
    const fit::LeastBudget found = least_of(graph, 256, work(2'000'000), enough);
    check_witness(graph, found);
    CHECK(found.memory() <= enough);
    CHECK(found.work <= least.work);
  }
}

TEST_CASE("budgets on peaks need no plan") {
  tests::for_each_seed(50, [&](tests::Random& random) {
    const core::Graph graph = tests::random_graph(random, tests::any_graph(random, {.max_nodes = 7}));
    const fit::Problem problem(graph);
    const fit::LeastBudget least =
        fit::find_least_budget(problem, problem, all_solvers(), {.search = work(200'000), .peak_only = true});
    CHECK_FALSE(least.plan);
    CHECK(least.memory() == core::reference::peak(graph, least.schedule));
    CHECK(least.memory() >= core::reference::least_peak(graph));
  });
}

TEST_CASE("a limit of time means work, and what passed before changes nothing") {
  core::Limit limit;
  CHECK(fit::least_budget_work(limit) == core::Limit::kAnyWork);
  limit.seconds = 10;
  const std::int64_t ten = fit::least_budget_work(limit);
  limit.seconds = 9.7;
  CHECK(fit::least_budget_work(limit) == ten);
  limit.seconds = 20;
  CHECK(fit::least_budget_work(limit) == 2 * ten);
  limit.work = 17;
  CHECK(fit::least_budget_work(limit) == 17);
}

TEST_CASE("the least memory is an objective: the lowest plan, then the least cost") {
  const core::Graph graph = models::build_model("unet", {.values = {{"image", 16}, {"width", 2}, {"depth", 2}}});
  const fit::Task task{fit::Problem(graph), fit::Objective::least_budget, 256, {}};
  const fit::Answer answer = fit::search(task, all_solvers(), work(2'000'000));
  const fit::LeastBudget least = least_of(graph, 256, work(2'000'000));
  REQUIRE(answer.success);
  CHECK(answer.found.plan->bytes <= least.memory());
  CHECK(answer.found.solution.cost <= core::evaluate(task.rounded.graph, least.schedule).cost);
  CHECK(core::check_plan(graph, answer.found.solution.schedule, *answer.found.plan).empty());
  CHECK(fit::gap_of(task, answer).of == fit::Gap::Of::plan);
}

TEST_CASE("a budget below what one node needs is proved too small without a search") {
  const core::Graph graph = models::build_model("unet", {.values = {{"image", 16}, {"width", 2}, {"depth", 2}}});
  const fit::Problem rounded = fit::Problem(graph).rounded_up(256);
  const fit::Task task{
      fit::Problem(graph, std::to_string(rounded.lower_bound - 1)), fit::Objective::within_budget, 256, {}};
  const fit::Answer answer = fit::search(task, all_solvers(), work(1'000'000));
  CHECK(answer.rounds == 0);
  CHECK_FALSE(answer.success);
  CHECK_FALSE(answer.has_schedule());
  CHECK(answer.found.solution.status == solvers::Status::infeasible);
  CHECK(answer.found.solution.stop == solvers::Stop::proved);
  CHECK(answer.found.solution.peak_bound.value == rounded.lower_bound);
  CHECK(answer.found.solution.peak_bound.scope == solvers::kAnySchedule);
}

TEST_CASE("plans of in-place nodes may be below the peak, and a budget is of plans") {
  // Each node overwrites its input in place. But its scratch is not negative, so the peak counts input and output. The
  // least peak is therefore 200 bytes, while the lowest plan has 100 bytes.
  core::GraphBuilder builder("in place");
  const core::NodeId a = builder.add({.name = "a", .size = 100, .cost = 1});
  const core::NodeId b = builder.add({.name = "b", .size = 100, .cost = 1, .inplace = a, .inputs = {a}});
  builder.add({.name = "c", .size = 100, .cost = 1, .inplace = b, .inputs = {b}});
  const core::Graph graph = builder.build();
  const fit::Problem problem(graph);
  CHECK(problem.lower_bound == 200);
  CHECK(problem.plan_slack == 100);
  CHECK(problem.plan_bound() == 100);
  const fit::LeastBudget least = least_of(graph, 1, work(100'000));
  CHECK(least.memory() == 100);
  CHECK(least.proved());
  for (const std::int64_t budget : {99, 100, 150}) {
    INFO(budget);
    const fit::Task task{fit::Problem(graph, std::to_string(budget)), fit::Objective::within_budget, 1, {}};
    const fit::Answer answer = fit::search(task, all_solvers(), work(100'000));
    CHECK(answer.success == (budget >= 100));
    CHECK((answer.found.solution.status == solvers::Status::infeasible) == (budget < 100));
    if (answer.success) CHECK(answer.found.plan->bytes == 100);
  }
}

TEST_CASE("no solver calls a budget infeasible that a schedule of its scope meets, beside nodes in place") {
  int scoped = 0;
  tests::for_each_seed(60, [&](tests::Random& random) {
    const core::Graph graph = tests::random_graph(random, tests::any_graph(random, {.max_nodes = 7}));
    const fit::Problem problem(graph);
    if (problem.plan_slack == 0) return;
    const fit::LeastBudget least = least_of(graph, 1, work(200'000));
    const fit::Task task{fit::Problem(graph, std::to_string(std::max<std::int64_t>(least.memory(), 1))),
                         fit::Objective::within_budget,
                         1,
                         {}};
    for (const solvers::SolverInfo& solver : solvers::registry()) {
      if (solver.graphs != "any" || !solver.why_missing().empty()) continue;
      INFO(solver.name << " " << least.memory());
      const fit::Answer answer = fit::search(task, solver, work(20'000));
      const solvers::Solution& solution = answer.found.solution;
      if (solution.status != solvers::Status::infeasible) continue;
      CHECK_FALSE(solution.scope.contains(graph, least.schedule));
      const std::string words = report::failure_text(task, solver, solver.scope, answer, least, "");
      // Schedules outside of the solver's scope may fit, so the message must not say that no schedule fits.
      CHECK(words.find("no schedule of '" + task.problem.name + "' fits") == std::string::npos);
      ++scoped;
    }
  });
  CHECK(scoped > 0);
}

TEST_CASE("the least peak is no higher than that of the lowest plan") {
  models::BuildOptions small{.values = {{"batch", 1}, {"image", 32}}};
  const auto check = [](const core::Graph& graph, std::int64_t units) {
    const auto least = [&](bool peak_only) {
      const fit::Task task = pipeline::make_task(graph, "graph", {.budget = "min", .peak_only = peak_only});
      const fit::Answer answer = fit::search(task, all_solvers(), work(units));
      REQUIRE(answer.success);
      const core::Evaluation found = core::evaluate(graph, answer.found.solution.schedule);
      if (peak_only) {
        CHECK(found.peak == answer.found.solution.peak);
        CHECK(found.peak >= fit::gap_of(task, answer).bound.value);
        CHECK(answer.found.plan.value().bytes >= task.rounded.plan_bound());
      }
      return std::pair(found.peak, found.cost);
    };
    const auto [peak, cost] = least(true);
    const auto [planned_peak, planned_cost] = least(false);
    CHECK(peak <= planned_peak);
    if (peak == planned_peak) CHECK(cost <= planned_cost);
  };
  // For this model, one long search for a low peak finds a peak that is 0.4% above the peak that the search for a low
  // plan finds. fit::search() must return the lower of the two peaks.
  for (const std::int64_t units : {100'000, 1'000'000}) check(models::build_model("unet", small), units);
  tests::for_each_seed(20, [&](tests::Random& random) {
    tests::RandomGraphOptions shape = tests::any_graph(random, {.min_nodes = 20, .max_nodes = 60});
    check(tests::random_graph(random, shape), 50'000);
  });
}

}  // namespace cairn::least_budget_test
