#include "cairn/python/src/answer.h"

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/text.h"
#include "cairn/python/src/bindings.h"
#include "cairn/python/src/call.h"
#include "cairn/report/pages.h"
#include "cairn/report/perfetto.h"
#include "cairn/report/support/explanation.h"
#include "cairn/report/support/json.h"
#include "cairn/report/support/words.h"
#include "cairn/solvers/registry.h"

namespace cairn::python {

solvers::SolveOptions SearchArguments::options() const {
  constexpr double kUsual = 10;  // default time limit, in seconds
  solvers::SolveOptions options;
  const solvers::SolverInfo& info = solvers::find_solver(solver);
  options.seed = seed;
  if (work_limit) {
    if (*work_limit < 1) throw core::InputError(fmt::format("work_limit={} must be at least 1", *work_limit));
    options.limit.work = *work_limit;
  }
  if (time_limit && !(*time_limit > 0))
    throw core::InputError(fmt::format("time_limit={} must be above 0", *time_limit));
  if (time_limit || !work_limit) options.limit.seconds = time_limit.value_or(kUsual);
  if (memory > 0) options.memory_bytes = memory;
  if (order != "free" && order != "fixed" && order != "input")
    throw core::InputError(fmt::format("order='{}' must be free, or fixed (or input)", order));
  if (max_occurrences < 0) throw core::InputError("max_occurrences= must be at least 1");
  options.scope = {order != "free" ? solvers::OrderRule::input : solvers::OrderRule::free, max_occurrences};
  for (const auto& [name, value] : own) info.set_option(options, fmt::format("{}={}", name, value));
  return options;
}

std::unique_ptr<const GivenSchedule> start_from(solvers::SolveOptions& search, const solvers::SolverInfo& solver,
                                                const core::Graph& graph, nb::handle given) {
  if (given.is_none()) return nullptr;
  auto start = std::make_unique<const GivenSchedule>(given_schedule(given));
  const core::Evaluation evaluation = core::evaluate(graph, start->schedule);
  if (!evaluation.valid())
    throw core::InputError(fmt::format("start= is not a valid schedule: {}", core::describe(graph, evaluation.defect)));
  if (!start->schedule.transfers.empty() && !graph.host_memory())
    throw core::InputError("start= moves values to the host; give the link= for which it is");
  if (!search.scope.contains(graph, start->schedule))
    throw core::InputError(
        fmt::format("start= is not {}; drop start=, order= or max_occurrences=", solvers::describe(search.scope)));
  if (!solver.scope.contains(graph, start->schedule))
    throw core::InputError(fmt::format("start= is not {}, as solver='{}' requires; drop start=, or try solver='auto'",
                                       solvers::describe(solver.scope), solver.name));
  search.start = &start->schedule;
  search.start_offsets = &start->offsets;
  return start;
}

Answer search_answer(fit::Task task, const SearchArguments& search, nb::handle start, Call& call) {
  if (task.unaffordable()) raise("InfeasibleError", report::unaffordable_text(task));
  const solvers::SolverInfo& solver = solvers::find_solver(search.solver);
  solvers::SolveOptions options = search.options();
  const auto given = start_from(options, solver, task.problem.graph, start);
  options.limit.stop = call.stop();
  options.progress = call.progress();
  Answer answered{std::move(task), search.solver, {}, {}, {}};
  call.run([&] {
    const core::Stopwatch watch(options.limit);
    answered.answer = fit::search(answered.task, solver, options);
    fit::Task& searched = answered.task;
    if (!searched.plans_fit() || searched.rounded.same_sizes(searched.problem))
      searched.problem.lower_bound =
          std::max(searched.problem.lower_bound, answered.answer.found.solution.peak_bound.value);
    options.limit = watch.rest();
    answered.least = fit::least_budget_after(searched, answered.answer, solver, options);
    answered.found = core::evaluate(searched.problem.graph, answered.answer.found.solution.schedule);
  });
  return answered;
}

void finish_search(Call& call, Answer& answered, const solvers::Scope& asked) {
  call.raise_pending();
  answered.interrupted = call.stopped();
  if (call.interrupted())
    raise_interrupted("interrupted; the best schedule so far is in .best",
                      answered.shown() ? nb::cast(std::move(answered)) : nb::none());
  if (answered.answer.success || (call.stopped() && answered.shown())) return;
  const solvers::Solution& solution = answered.answer.found.solution;
  const bool infeasible = solution.status == solvers::Status::infeasible;
  nb::dict attributes;
  attributes["lower_bound"] = report::problem_of_failure(answered.task, answered.answer).lower_bound;
  attributes["least_budget"] = answered.least.memory();
  attributes["least"] = nb::cast(answered.least_budget());
  attributes["scope"] = solvers::describe(infeasible ? solution.peak_bound.scope : solution.scope);
  const std::string message = report::failure_text(answered.task, solvers::find_solver(answered.solver), asked,
                                                   answered.answer, answered.least, ", or ask for peak_only=");
  attributes["answer"] = answered.shown() ? nb::cast(std::move(answered)) : nb::none();
  raise(infeasible ? "InfeasibleError" : "NotFoundError", message, attributes);
}

namespace {

Answer solve(const core::Graph& graph, const pipeline::Request& request, const SearchArguments& search,
             nb::handle start, nb::object progress) {
  fit::Task task = pipeline::make_task(graph, "graph", request);
  Call call(std::move(progress));
  Answer answered = search_answer(std::move(task), search, start, call);
  finish_search(call, answered, search.options().scope);
  return answered;
}

double increase(std::int64_t value, std::int64_t base) {
  return base == 0 ? 0 : static_cast<double>(value - base) / static_cast<double>(base);
}

std::string repr(const Answer& a) {
  const fit::Problem& problem = a.task.problem;
  return fmt::format("<cairn.Answer of '{}': {}, cost {:+.2f}%, {}>", problem.name,
                     a.answer.found.plan ? "planned " + core::format_bytes(a.answer.found.plan->bytes)
                                         : "peak " + core::format_bytes(a.found.peak),
                     100 * increase(a.found.cost, problem.baseline.cost),
                     solvers::to_string(a.answer.found.solution.status));
}

void bind_least_budget(nb::module_& module) {
  nb::class_<LeastBudget>(module, "LeastBudget", "A budget that is known to be met, with what meets it.")
      .def_prop_ro("bytes", [](const LeastBudget& l) { return l.of.memory(); })
      .def_prop_ro("solver", [](const LeastBudget& l) { return std::string(l.of.solver); })
      .def_prop_ro(
          "schedule", [](const LeastBudget& l) -> const core::Schedule& { return l.of.schedule; },
          nb::rv_policy::reference_internal)
      .def_prop_ro(
          "plan", [](const LeastBudget& l) { return l.of.plan ? &*l.of.plan : nullptr; },
          nb::rv_policy::reference_internal, nb::sig("def plan(self) -> Plan | None"))
      .def_prop_ro("peak", [](const LeastBudget& l) { return l.of.evaluation.peak; })
      .def_prop_ro("cost", [](const LeastBudget& l) { return l.of.evaluation.cost; })
      .def_prop_ro("recomputed", [](const LeastBudget& l) { return l.of.evaluation.recomputed; })
      .def_prop_ro(
          "lower_bound", [](const LeastBudget& l) { return l.of.bound.value; }, "No schedule of `scope` has less.")
      .def_prop_ro("scope", [](const LeastBudget& l) { return solvers::describe(l.of.bound.scope); })
      .def_prop_ro(
          "proved", [](const LeastBudget& l) { return l.of.proved(); }, "That it is the least there is, in `scope`.")
      .def_prop_ro("seconds", [](const LeastBudget& l) { return l.of.seconds; })
      .def(
          "to_json",
          [](const LeastBudget& l) { return report::json_text(report::least_budget_json(l.of, l.baseline_cost)); },
          "The object `least_budget` of `cairn info --json`, as text.")
      .def("__repr__", [](const LeastBudget& l) {
        return fmt::format("<cairn.LeastBudget {} bytes with solver {}{}>", l.of.memory(), l.of.solver,
                           l.of.proved() ? ", proved least" : "");
      });
}

void bind_arguments(nb::module_& module) {
  nb::class_<SearchArguments>(module, "SearchArguments")
      .def(
          "__init__",
          [](SearchArguments* self, std::string solver, std::optional<double> time_limit,
             std::optional<std::int64_t> work_limit, std::uint64_t seed, std::int64_t memory, std::string order,
             std::int32_t max_occurrences, std::map<std::string, std::int64_t> own) {
            new (self) SearchArguments{std::move(solver), time_limit,      work_limit,    seed, memory,
                                       std::move(order),  max_occurrences, std::move(own)};
          },
          "solver"_a, "time_limit"_a.none(), "work_limit"_a.none(), "seed"_a, "memory"_a, "order"_a,
          "max_occurrences"_a, "options"_a);
  nb::class_<pipeline::Request>(module, "Request")
      .def(
          "__init__",
          [](pipeline::Request* self, std::string budget, std::string max_cost, bool peak_only, std::int64_t alignment,
             std::string solver, std::optional<std::int64_t> device_memory, std::optional<std::int64_t> context,
             std::int64_t overlap_steps, std::string link, std::string host_budget) {
            new (self)
                pipeline::Request{std::move(budget), std::move(max_cost), peak_only, alignment, std::move(solver)};
            self->overlap_steps = overlap_steps;
            self->link = std::move(link);
            self->host_budget = std::move(host_budget);
            if (device_memory) self->device = {*device_memory, context.value_or(pipeline::kContextBytes)};
          },
          "budget"_a, "max_cost"_a, "peak_only"_a, "alignment"_a, "solver"_a, "device_memory"_a.none(),
          "context_memory"_a.none(), "overlap_steps"_a, "link"_a, "host_budget"_a);
}

void bind_found(nb::class_<Answer>& answer) {
  answer.def_prop_ro("graph", [](const Answer& a) { return a.task.problem.graph; })
      .def_prop_ro(
          "schedule", [](const Answer& a) -> const core::Schedule& { return a.answer.found.solution.schedule; },
          nb::rv_policy::reference_internal)
      .def_prop_ro(
          "plan", [](const Answer& a) { return a.answer.found.plan ? &*a.answer.found.plan : nullptr; },
          nb::rv_policy::reference_internal, nb::sig("def plan(self) -> Plan | None"))
      .def_prop_ro("solver", [](const Answer& a) { return a.solver; })
      .def_prop_ro(
          "peak", [](const Answer& a) { return a.found.peak; }, "The peak of the schedule, in bytes.")
      .def_prop_ro(
          "planned",
          [](const Answer& a) {
            return a.answer.found.plan ? std::optional(a.answer.found.plan->bytes) : std::nullopt;
          },
          "Height of the plan in bytes, which the budget limits; None if nothing was planned.")
      .def_prop_ro("cost", [](const Answer& a) { return a.found.cost; })
      .def_prop_ro(
          "makespan", [](const Answer& a) { return a.found.cost; },
          "The time of the schedule with all waits for copies, which is its `cost`.")
      .def_prop_ro(
          "waiting", [](const Answer& a) { return a.found.waiting; },
          "The part of the makespan in which steps wait for copies.")
      .def_prop_ro(
          "host_peak", [](const Answer& a) { return a.found.host_peak; },
          "The largest number of bytes that copies hold on the host.")
      .def_prop_ro(
          "cost_increase", [](const Answer& a) { return increase(a.found.cost, a.task.problem.baseline.cost); },
          "The additional cost as a fraction of the baseline's cost: 0.05 is 5% more.")
      .def_prop_ro(
          "recomputed", [](const Answer& a) { return a.found.recomputed; }, "Number of steps that run a node again.")
      .def_prop_ro(
          "budget", [](const Answer& a) { return a.task.problem.budget; },
          "The budget in bytes; None if none was given.")
      .def_prop_ro("alignment", [](const Answer& a) { return a.task.alignment; })
      .def_prop_ro(
          "baseline", [](const Answer& a) { return evaluation_of(a.task.problem.graph, a.task.problem.baseline); },
          "The Evaluation of the graph's input order.");
}

void bind_quality(nb::class_<Answer>& answer) {
  answer
      .def_prop_ro(
          "success", [](const Answer& a) { return a.answer.success; },
          "False if a callback stopped the search before a schedule that was asked for was found.")
      .def_prop_ro(
          "status", [](const Answer& a) { return std::string(solvers::to_string(a.answer.found.solution.status)); },
          "'optimal' (proved), 'feasible', or 'not_found'.")
      .def_prop_ro(
          "stop", [](const Answer& a) { return std::string(solvers::to_string(a.answer.found.solution.stop)); },
          "Why the search ended: 'proved', 'stagnated', 'limit', 'interrupted' or 'ended'.")
      .def_prop_ro("objective", [](const Answer& a) { return std::string(fit::to_string(a.task.objective)); })
      .def_prop_ro(
          "lower_bound", [](const Answer& a) { return a.task.problem.lower_bound; },
          "No schedule has a peak below this number of bytes.")
      .def_prop_ro(
          "gap",
          [](const Answer& a) {
            return a.answer.success ? std::optional(fit::gap_of(a.task, a.answer).pct() / 100) : std::nullopt;
          },
          "The largest fraction by which the answer may exceed the best possible answer.")
      .def_prop_ro(
          "work", [](const Answer& a) { return a.answer.found.solution.work; },
          "The work of the search, in the unit of work_limit.")
      .def_prop_ro("seconds", [](const Answer& a) { return a.answer.found.seconds; })
      .def_prop_ro("least_budget", &Answer::least_budget, "The least budget that some schedule is known to meet.")
      .def_prop_ro("interrupted", [](const Answer& a) { return a.interrupted; });
}

void bind_texts(nb::class_<Answer>& answer) {
  answer
      .def(
          "to_json",
          [](const Answer& a) {
            report::Json json = report::answer_json(a.task, a.solver, a.answer, a.least, a.interrupted);
            if (a.answer.success)
              report::Explanation(a.task.problem.graph, &a.answer.found.solution.schedule).add_to(json);
            return report::json_text(json);
          },
          "The object that `cairn solve --json` prints, as text.")
      .def("__str__",
           [](const Answer& a) {
             if (!a.answer.success || !a.answer.found.plan) return repr(a);
             return report::answer_table(a.task, a.solver, a.answer);
           })
      .def("__repr__", &repr)
      .def("_repr_html_", in_module("cairn._picture", "answer_html"), nb::sig("def _repr_html_(self) -> str"))
      .def(
          "explain",
          [](const Answer& a) {
            return report::Explanation(a.task.problem.graph, &a.answer.found.solution.schedule).text(true);
          },
          "What is in memory at the peak and what recomputation saves, as the tables of `cairn solve --explain`.")
      .def("trace", file_of<Answer>([](const Answer& a) {
             const core::Graph& graph = a.task.problem.graph;
             const core::Schedule baseline = core::baseline_schedule(graph);
             return report::perfetto_trace(graph,
                                           {.schedule = &a.answer.found.solution.schedule,
                                            .plan = a.answer.found.plan ? &*a.answer.found.plan : nullptr},
                                           {.schedule = &baseline});
           }),
           "path"_a, kTrace, "Writes a Chrome/Perfetto trace: schedule and baseline side by side.")
      .def("report", file_of<Answer>([](const Answer& a) { return report::solve_page(a.task, a.solver, a.answer); }),
           "path"_a, kReport, "Writes the HTML page of `cairn solve --report`.");
}

}  // namespace

void bind_answer(nb::module_& module) {
  bind_least_budget(module);
  bind_arguments(module);
  nb::class_<Answer> answer(module, "Answer",
                            "The best schedule that was found, what is promised of it, and how good it is.");
  bind_found(answer);
  bind_quality(answer);
  bind_texts(answer);
  module.def("solve", &solve, "graph"_a, "request"_a, "search"_a, "start"_a.none(), "progress"_a.none());
  module.def("solvers", [] {
    nb::list names;
    for (const solvers::SolverInfo& info : solvers::registry()) names.append(std::string(info.name));
    return names;
  });
}

}  // namespace cairn::python
