#include "cairn/cli/choice.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/support/text.h"
#include "cairn/pipeline/run.h"

namespace cairn::cli {
namespace {

/// Largest fraction of the time limit that the search for a schedule leaves unused, so that the schedule can be
/// executed within the limit.
constexpr double kMostLeft = 0.5;

std::string over_budget_text(const fit::Problem& problem, const std::string& path, std::int64_t planned) {
  const bool alike = report::read_alike(planned, *problem.budget);
  return report::in_lines(
      {report::verdict_text("", core::input_name(path),
                            fmt::format(" needs {} as planned, more than the budget of {}",
                                        baseline_share_text(problem, planned, true, alike),
                                        baseline_share_text(problem, *problem.budget, false, alike))),
       bound_text(problem.of_plans()), "raise --budget"});
}

[[noreturn]] void explain_no_answer(const fit::Task& task, const ChoiceArguments& arguments,
                                    const fit::Answer& answer) {
  const fit::Problem failed = report::problem_of_failure(task, answer);
  solvers::SolveOptions search = arguments.search.options();
  search.limit = until_answer(search.limit, task.problem.graph);
  const fit::LeastBudget least =
      remember(task, arguments.search, fit::least_budget_after(task, answer, arguments.search.find(), search));
  Json details = describe(failed);
  details["alignment"] = task.alignment;
  details["solver"] = arguments.search.solver;
  add_proof(details, task, answer);
  const bool planned = answer.found.plan && answer.plan_alone_misses(failed.budget);
  details["least_planned_bytes"] = planned ? Json(answer.found.plan->bytes) : Json(nullptr);
  add_limits(details, failed, least);
  throw failure_of(task, arguments.search, answer, least, "", "", std::move(details));
}

}  // namespace

solvers::PlanOptions ChoiceArguments::plan_options(const core::Graph& executed) const {
  solvers::PlanOptions options;
  options.alignment = alignment.of(executed);
  options.guard_bytes = sentinels ? pipeline::kGuardBytes : 0;
  options.overlap_steps = objective.overlap_steps;
  return options;
}

void ChoiceArguments::add_streams_to(CLI::App& app) {
  app.add_option("--streams", streams,
                 "streams of a step on a GPU, on which independent ops can run at the same time (default 1)")
      ->check(at_least_one());
  app.add_option("--overlap-steps", objective.overlap_steps,
                 "with --streams: keep every buffer's addresses free for so many steps after its last use, so that "
                 "fewer ops wait for each other; the plan needs more bytes, which count in the budget (default 0)")
      ->check(CLI::NonNegativeNumber);
}

void ChoiceArguments::require_streams(const pipeline::Backend& opened, bool poison) const {
  opened.require_streams(streams, objective.overlap_steps, poison || sentinels);
}

void ChoiceArguments::require_one_choice() const {
  if (schedule.empty()) return;
  if (search.names_solver())
    throw core::InputError("--schedule runs a schedule as it is and --solver searches one; drop either");
  if (!objective.max_cost.empty() || objective.budget == "min")
    throw core::InputError("--schedule runs a schedule as it is: drop --max-cost and --budget min");
  if (search.narrows() || !start.path.empty())
    throw core::InputError(
        "--schedule runs a schedule as it is: drop --start, --order, --max-occurrences and --option");
}

void write_schedule(const core::Graph& given, const ChoiceArguments& arguments, const core::Schedule& schedule,
                    const std::string& solver, const std::optional<core::Plan>& plan) {
  write_output(arguments.output, [&] { return core::schedule_to_json(given, schedule, solver, plan); });
}

Choice read_choice(const fit::Problem& problem, const core::Graph& given, const ChoiceArguments& arguments) {
  auto file = core::load_schedule(arguments.schedule, given, problem.graph.fingerprint(), reading(arguments.schedule));
  Choice choice{fit::decide_on_given(problem, file.solver.empty() ? "unknown" : file.solver, std::move(file.schedule),
                                     file.offsets, arguments.plan_options(problem.graph)),
                {}};
  if (problem.budget && choice.decision.memory() > *problem.budget)
    throw Failure(kNotFound, over_budget_text(problem, arguments.schedule, choice.decision.memory()));
  const std::int64_t on_host = choice.decision.executed_plan().host_bytes;
  if (const auto& host = problem.graph.host_memory(); host && on_host > host->budget)
    throw Failure(kNotFound,
                  report::in_lines(
                      {report::verdict_text("", core::input_name(arguments.schedule),
                                            fmt::format(" needs {} on the host as planned, more than the "
                                                        "host budget of {}",
                                                        core::format_bytes(on_host), core::format_bytes(host->budget))),
                       "raise --host-budget"}));
  return choice;
}

Choice search_choice(const fit::Task& task, const core::Graph& given, const ChoiceArguments& arguments,
                     double executing) {
  const core::Graph& graph = task.problem.graph;
  const core::Graph linked = given.with_host_memory(graph.host_memory());
  solvers::SolveOptions search = arguments.search.options();
  const auto start = arguments.start.load_into(search, arguments.search.find(), linked, graph.fingerprint());
  search.limit = until_answer(search.limit, task.problem.graph);
  search.limit.seconds -= std::min(executing, kMostLeft * search.limit.seconds);
  fit::Answer answer;
  {
    ProgressLine line(arguments.console);
    search.progress = line.of_search(task.problem, search.limit.seconds);
    answer = cli::search(task, arguments.search, search);
  }
  const core::Schedule& schedule = answer.found.solution.schedule;
  if (catch_interrupt() && answer.has_schedule()) {
    write_schedule(linked, arguments, schedule, arguments.search.solver, answer.found.plan);
    throw Failure(kInterrupted,
                  "interrupted during the search, nothing was executed\n" +
                      report::best_so_far_text(task, answer, arguments.output),
                  describe(task.problem));
  }
  if (!answer.success) explain_no_answer(task, arguments, answer);
  remember(task, arguments.search, fit::least_budget_after(task, answer, arguments.search.find(), search));
  auto decision =
      fit::decide_on(graph, arguments.search.solver, schedule, arguments.plan_options(graph), answer.found.plan);
  return {std::move(decision), std::move(answer)};
}

}  // namespace cairn::cli
