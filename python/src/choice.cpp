#include "cairn/python/src/choice.h"

#include <fmt/format.h>

#include <utility>

#include "cairn/core/error.h"
#include "cairn/pipeline/run.h"
#include "cairn/report/support/words.h"

namespace cairn::python {
namespace {

/// Finds a plan for a schedule that the caller gave. Raises NotFoundError if the plan needs more bytes than the budget.
fit::Decision decide_on_given(const fit::Problem& problem, nb::handle schedule, const solvers::PlanOptions& plan) {
  GivenSchedule given = given_schedule(schedule);
  fit::Decision decision = fit::decide_on_given(problem, "given", std::move(given.schedule), given.offsets, plan);
  if (!problem.budget || decision.memory() <= *problem.budget) return decision;
  nb::dict attributes;
  attributes["lower_bound"] = problem.plan_bound();
  raise("NotFoundError",
        fmt::format("the schedule needs {} as planned, more than the budget of {}\n{}\nraise budget=",
                    report::baseline_share_text(problem, decision.memory(), true),
                    report::baseline_share_text(problem, *problem.budget), report::bound_text(problem.of_plans())),
        attributes);
}

}  // namespace

bool has_objective(const pipeline::Request& request) {
  return !request.budget.empty() || !request.max_cost.empty() || request.device;
}

Choice choose(pipeline::Backend& backend, const core::Graph& prepared, const pipeline::Request& request,
              const SearchArguments& search, nb::handle schedule, std::int64_t guard_bytes, Call& call) {
  if (!schedule.is_none() && (!request.max_cost.empty() || request.budget == "min"))
    throw core::InputError("schedule= runs a schedule as it is: drop max_cost= and budget='min'");
  Choice choice{pipeline::make_task(prepared, "graph", request), {}, {}};
  pipeline::require_memory(backend, prepared, choice.task.rounded);
  const solvers::PlanOptions plan{
      .alignment = choice.task.alignment, .guard_bytes = guard_bytes, .overlap_steps = request.overlap_steps};
  if (!schedule.is_none()) {
    choice.decision = decide_on_given(choice.task.problem, schedule, plan);
  } else if (!has_objective(request)) {
    choice.decision = fit::decide_on_baseline(prepared, plan);
  } else {
    Answer answered = search_answer(std::move(choice.task), search, nb::none(), call);
    finish_search(call, answered, search.options().scope);
    choice.task = std::move(answered.task);
    choice.answer = std::move(answered.answer);
    const auto& found = choice.answer->found;
    choice.decision =
        fit::decide_on(choice.task.problem.graph, search.solver, found.solution.schedule, plan, found.plan);
  }
  return choice;
}

}  // namespace cairn::python
