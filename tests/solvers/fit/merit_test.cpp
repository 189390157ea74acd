#include <limits>

#include "cairn/solvers/fit/fit_to_budget.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/tests/catch.h"

namespace cairn::fit_test {
namespace {

using fit::Answer;
using fit::Objective;
using solvers::Status;

fit::Task task_of(Objective objective) {
  core::GraphBuilder builder("one");
  builder.add({.name = "a", .size = 100, .keep = true});
  return {.problem = fit::Problem(builder.build()), .objective = objective};
}

/// Returns an answer whose schedule has one step. `plan`: bytes of the plan; 0: there is no plan.
Answer answer_of(bool success, std::int64_t cost, std::int64_t peak, std::int64_t plan) {
  Answer answer;
  answer.success = success;
  auto& solution = answer.found.solution;
  solution.status = success ? Status::feasible : Status::not_found;
  solution.schedule.steps = {0};
  solution.cost = cost;
  solution.peak = peak;
  if (plan > 0) answer.found.plan = core::Plan{.bytes = plan};
  return answer;
}

TEST_CASE("a success is better than a failure, and a proof of a failure is better than none", "[fit]") {
  for (const auto objective : {Objective::within_budget, Objective::within_peak, Objective::least_peak,
                               Objective::least_budget, Objective::within_cost, Objective::knee}) {
    const fit::Task task = task_of(objective);
    const Answer dear = answer_of(true, 1000, 1000, 1000);
    Answer proved = answer_of(false, 0, 10, 10), cheap = answer_of(false, 0, 1, 1);
    proved.found.solution.status = Status::infeasible;
    CHECK(merit(task, dear) < merit(task, proved));
    CHECK(merit(task, proved) < merit(task, cheap));
  }
}

TEST_CASE("answers to a budget are compared by cost, then by the distance to the bound, then by bytes", "[fit]") {
  for (const auto objective : {Objective::within_budget, Objective::within_peak}) {
    const fit::Task task = task_of(objective);
    const Answer cheap = answer_of(true, 10, 90, 95), dear = answer_of(true, 11, 50, 50);
    CHECK(merit(task, cheap) < merit(task, dear));
    Answer proved = answer_of(true, 10, 99, 99);
    proved.found.solution.cost_bound.value = 10;
    CHECK(merit(task, proved) < merit(task, cheap));
    CHECK(merit(task, answer_of(true, 10, 90, 91)) < merit(task, cheap));
    CHECK(merit(task, answer_of(true, 10, 92, 0)) < merit(task, cheap));  // without a plan, the peak counts
  }
}

TEST_CASE("answers with other objectives are compared by bytes, then by cost, then by the distance to the bound",
          "[fit]") {
  for (const auto objective :
       {Objective::least_peak, Objective::least_budget, Objective::within_cost, Objective::knee}) {
    const fit::Task task = task_of(objective);
    const Answer small = answer_of(true, 20, 90, 95);
    CHECK(merit(task, small) < merit(task, answer_of(true, 10, 90, 96)));
    CHECK(merit(task, answer_of(true, 19, 95, 95)) < merit(task, small));
    Answer proved = small;
    proved.found.solution.peak_bound.value = 95;
    CHECK(merit(task, proved) < merit(task, small));
    // A bound above the bytes, of the rounded graph, must not give a negative distance.
    proved.found.solution.peak_bound.value = 100;
    CHECK(merit(task, proved).back() == 0);
  }
}

TEST_CASE("failures are compared by bytes, then by peak, and the last is one without a schedule", "[fit]") {
  const fit::Task task = task_of(Objective::within_budget);
  const Answer low = answer_of(false, 50, 90, 95);
  CHECK(merit(task, low) < merit(task, answer_of(false, 10, 90, 96)));
  CHECK(merit(task, answer_of(false, 50, 80, 95)) < merit(task, low));
  Answer none = answer_of(false, 0, 0, 0);
  none.found.solution.schedule.steps.clear();
  CHECK(merit(task, low) < merit(task, none));
  CHECK(merit(task, none)[1] == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("an answer to a budget is improved by a plan that fits, then by cost, and until then by a lower plan",
          "[fit]") {
  fit::Fit fit;
  fit.budget = 100;
  CHECK((fit.is_improved_by(500, 9) && fit.is_improved_by(100, 9)));  // nothing is planned yet
  fit.take({{0}}, 1, 10, core::Plan{.bytes = 200}, 3);
  CHECK_FALSE(fit.fits());
  CHECK((fit.is_improved_by(199, 99) && fit.is_improved_by(100, 99)));
  CHECK_FALSE((fit.is_improved_by(200, 1) || fit.is_improved_by(201, 1)));
  fit.take({{0}}, 1, 10, core::Plan{.bytes = 100}, 3);
  CHECK(fit.fits());
  CHECK((fit.is_improved_by(100, 9) && fit.is_improved_by(1, 9)));
  CHECK_FALSE((fit.is_improved_by(1, 10) || fit.is_improved_by(101, 1)));
  CHECK((fit.solution.peak == 1 && fit.solution.cost == 10 && fit.solution.best_seconds == 3));
}

}  // namespace
}  // namespace cairn::fit_test
