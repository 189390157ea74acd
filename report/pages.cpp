#include "cairn/report/pages.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "cairn/core/support/text.h"
#include "cairn/report/html/support/words.h"
#include "cairn/report/support/words.h"

namespace cairn::report {

void add_schedule(Report& page, ReportSchedule schedule, const core::Evaluation& evaluation) {
  page.summary += fmt::format(" \u00b7 {} steps", html::grouped(schedule.schedule.length()));
  if (evaluation.recomputed > 0) page.summary += fmt::format(", {} recomputed", html::grouped(evaluation.recomputed));
  page.shown = static_cast<std::int32_t>(page.schedules.size());
  page.schedules.push_back(std::move(schedule));
}

void add_memory_facts(Report& page, const fit::Problem& problem, std::int64_t peak,
                      std::optional<std::int64_t> from_bytes) {
  const std::int64_t from = from_bytes.value_or(problem.baseline.peak);
  page.facts.push_back({"Peak memory", html::change(from, peak), html::from_to(from, peak)});
  page.facts.push_back({"Lower bound", core::format_bytes(problem.lower_bound), "no schedule has less"});
  page.levels.push_back({"lower bound", problem.lower_bound, ReportLevel::Kind::bound});
}

void add_streams_fact(Report& page, const core::Graph& graph, const fit::Decision& decision,
                      const std::optional<runtime::Overlap>& overlap) {
  if (overlap)
    page.facts.push_back({"Streams", std::to_string(overlap->streams), streams_note(graph, decision, *overlap)});
}

void add_cost_fact(Report& page, const fit::Problem& problem, const core::Evaluation& evaluation) {
  page.facts.push_back({"Cost", html::change(problem.baseline.cost, evaluation.cost),
                        fmt::format("{} \u2192 {}", html::cost_text(problem.baseline.cost, page.cost_unit),
                                    html::cost_text(evaluation.cost, page.cost_unit))});
}

void add_budget(Report& page, const fit::Problem& problem, std::optional<std::int64_t> planned_bytes,
                std::optional<std::int64_t> peak_bytes) {
  if (problem.budget) {
    page.budget_bytes = problem.budget;
    page.levels.push_back({"budget", *problem.budget, ReportLevel::Kind::budget, true});
  }
  if (!planned_bytes) return;
  if (!problem.budget) {
    page.facts.push_back({"Planned", core::format_bytes(*planned_bytes), "height of the arena"});
    return;
  }
  const std::int64_t counted = peak_bytes.value_or(*planned_bytes);
  const bool fits = counted <= *problem.budget;
  const std::string planned = core::format_bytes(*planned_bytes) + " planned";
  page.facts.push_back({"Budget", core::format_bytes(*problem.budget),
                        peak_bytes ? fmt::format("on the peak, {}; {}", fits ? "met" : "exceeded", planned)
                                   : fmt::format("{}: {}", fits ? "met" : "exceeded", planned),
                        fits ? ReportFact::Tone::good : ReportFact::Tone::bad});
}

ReportTradeoff tradeoff_of(const fit::Problem& problem, const std::vector<solvers::Tradeoff>& met, std::int64_t peak,
                           std::int64_t cost) {
  ReportTradeoff tradeoff;
  tradeoff.note = "The ring is the schedule of this page; the other points were also found by the search.";
  tradeoff.baseline = {problem.baseline.peak, problem.baseline.cost, "baseline"};
  tradeoff.lower_bound_bytes = problem.lower_bound;
  for (const auto& [bytes, at_cost] : met) {
    if (bytes != peak || at_cost != cost) tradeoff.found.push_back({bytes, at_cost, "schedule met"});
  }
  tradeoff.found.push_back({peak, cost, "this schedule", "", true});
  return tradeoff;
}

std::string info_page(const fit::Problem& problem, const fit::LeastBudget& least,
                      const std::optional<fit::LeastBudget>& within, std::vector<ReportFact> facts) {
  const core::Graph& graph = problem.graph;
  Report page = html::of_graph("cairn info", graph, problem.name);
  page.facts.push_back({"Baseline peak", core::format_bytes(problem.baseline.peak),
                        "cost " + html::cost_text(problem.baseline.cost, page.cost_unit)});
  page.facts.push_back(
      {"Least budget known", core::format_bytes(least.memory()),
       fmt::format("{} of the baseline\u2019s peak, cost {}{}", html::share(least.memory(), problem.hundred_percent),
                   html::change(problem.baseline.cost, least.evaluation.cost),
                   least.proved() ? "; proved least" : "")});
  page.facts.push_back({"Lower bound", core::format_bytes(problem.lower_bound), "no schedule has less"});
  page.facts.push_back(
      {"Resident", core::format_bytes(graph.resident_bytes()), "weights and states, not counted in the budget"});
  page.facts.insert(page.facts.end(), facts.begin(), facts.end());
  page.levels.push_back({"lower bound", problem.lower_bound, ReportLevel::Kind::bound});
  page.levels.push_back({"least budget", least.memory(), ReportLevel::Kind::schedule});
  add_budget(page, problem, std::nullopt);
  ReportTradeoff& tradeoff = page.tradeoff.emplace();
  tradeoff.memory = least.plan ? "planned memory" : "peak memory";
  tradeoff.baseline = {problem.baseline.peak, problem.baseline.cost, "baseline"};
  tradeoff.lower_bound_bytes = problem.lower_bound;
  const auto add = [&](const char* name, const fit::LeastBudget& reached) {
    tradeoff.found.push_back(
        {reached.memory(), reached.evaluation.cost, name, "", true, static_cast<std::int32_t>(page.schedules.size())});
    page.shown = tradeoff.found.back().schedule;
    page.schedules.push_back({name, reached.schedule, reached.plan});
  };
  if (!least.schedule.steps.empty()) add("least budget", least);
  if (within && !within->schedule.steps.empty()) add("within the budget", *within);
  const fit::LeastBudget& shown = within && !within->schedule.steps.empty() ? *within : least;
  add_transfers(page, graph, shown.schedule, shown.plan ? &*shown.plan : nullptr);
  return report_page(page);
}

std::string solve_page(const fit::Task& task, std::string_view solver, const fit::Answer& answer) {
  const fit::Problem& problem = task.problem;
  const core::Schedule& schedule = answer.found.solution.schedule;
  const core::Evaluation evaluation = core::evaluate(problem.graph, schedule);
  Report page = html::of_graph("cairn solve", problem.graph, problem.name);
  page.summary += fmt::format(" \u00b7 solver {} \u00b7 {}, {:.1f} s", solver,
                              answer.success ? solvers::to_string(answer.found.solution.status) : "nothing that fits",
                              answer.found.seconds);
  add_schedule(page, {"schedule", schedule, answer.found.plan}, evaluation);
  add_memory_facts(page, problem, evaluation.peak);
  add_cost_fact(page, problem, evaluation);
  add_budget(page, problem, answer.found.plan ? std::optional(answer.found.plan->bytes) : std::nullopt,
             task.plans_fit() ? std::nullopt : std::optional(evaluation.peak));
  add_transfers(page, problem.graph, schedule, answer.found.plan ? &*answer.found.plan : nullptr);
  std::vector<solvers::Tradeoff> met = answer.found.solution.tradeoffs;
  if (answer.curve) met = answer.curve->met;
  page.tradeoff = tradeoff_of(problem, met, evaluation.peak, evaluation.cost);
  return report_page(page);
}

namespace {

void add_plan_facts(Report& page, const core::Plan& plan, const PlanVerdict& verdict) {
  using Tone = ReportFact::Tone;
  page.facts.push_back({"Arena", core::format_bytes(plan.bytes), verdict.text,
                        plan.bytes == verdict.proved_bytes ? Tone::good : Tone::plain});
  page.facts.push_back({"Live at once", core::format_bytes(plan.lower_bound),
                        plan.bytes == plan.lower_bound ? "the arena has no byte more"
                                                       : "arena: " + html::change(plan.lower_bound, plan.bytes)});
  page.levels.push_back({"arena", plan.bytes, ReportLevel::Kind::schedule, true});
  page.levels.push_back({"proved", verdict.proved_bytes, ReportLevel::Kind::bound, true});
  if (!verdict.capacity_bytes) return;
  const bool fits = plan.bytes <= *verdict.capacity_bytes;
  page.facts.push_back({"Capacity", core::format_bytes(*verdict.capacity_bytes),
                        fits                                             ? "the plan fits"
                        : verdict.proved_bytes > *verdict.capacity_bytes ? "proved too small"
                                                                         : "no plan found that fits",
                        fits ? Tone::good : Tone::bad});
  page.levels.push_back({"capacity", *verdict.capacity_bytes, ReportLevel::Kind::budget, true});
}

std::string searched(const core::Plan& plan, double seconds) {
  return fmt::format("alignment {} \u00b7 searched for {:.2f} s", plan.alignment, seconds);
}

}  // namespace

std::string plan_page(const core::Graph& graph, const core::Schedule& schedule, const core::Plan& plan,
                      const PlanVerdict& verdict, const std::string& name) {
  Report page = html::of_graph("cairn plan", graph, graph.name().empty() ? name : graph.name());
  add_schedule(page, {"schedule", schedule, plan}, core::evaluate(graph, schedule));
  page.summary += " \u00b7 " + searched(plan, verdict.seconds);
  add_plan_facts(page, plan, verdict);
  return report_page(page);
}

std::string plan_page(const std::string& name, ReportBuffers buffers, const PlanVerdict& verdict) {
  Report page;
  page.title = name;
  page.command = "cairn plan";
  page.summary = fmt::format("{} buffers \u00b7 {}", html::grouped(static_cast<std::int64_t>(buffers.specs.size())),
                             searched(buffers.plan, verdict.seconds));
  add_plan_facts(page, buffers.plan, verdict);
  if (!buffers.conflict.empty())
    page.facts.push_back({"Conflict", html::grouped(static_cast<std::int64_t>(buffers.conflict.size())),
                          "buffers that do not fit together, with a red border", ReportFact::Tone::bad});
  page.buffers = std::move(buffers);
  return report_page(page);
}

}  // namespace cairn::report
