#include "cairn/pipeline/run.h"

#include <fmt/format.h>

#include <utility>

#include "cairn/core/formats/files.h"
#include "cairn/core/text.h"
#include "cairn/pipeline/pages.h"
#include "cairn/pipeline/report/internal/words.h"
#include "cairn/pipeline/report/report.h"

namespace cairn::pipeline {
namespace {

ReportTable numbers_of(const Problem& problem, const Decision& decision, const RunResult& result,
                       const std::string& cost_unit) {
  const Decision& baseline = result.baseline;
  const runtime::StepReport &before = result.baseline_run.report, &after = result.scheduled_run.report;
  ReportTable table{"Numbers",
                    "Resident bytes stand beside the budget: they are there under every schedule.",
                    {"", "baseline", "schedule", "change"},
                    {}};
  const auto add = [&](std::string name, std::string from, std::string to, std::string change) {
    table.rows.push_back({{std::move(name), std::move(from), std::move(to), std::move(change)}});
  };
  const auto bytes = [&](std::string name, std::int64_t from, std::int64_t to) {
    add(std::move(name), core::format_bytes(from), core::format_bytes(to), html::change(from, to));
  };
  bytes("predicted peak", baseline.predicted_peak, decision.predicted_peak);
  bytes("planned arena", baseline.plan.bytes, decision.plan.bytes);
  bytes("measured high-water mark", before.measured_peak_bytes, after.measured_peak_bytes);
  const std::int64_t from = baseline.evaluation.cost, to = decision.evaluation.cost;
  add("cost", html::cost_text(from, cost_unit), html::cost_text(to, cost_unit), html::change(from, to));
  add("time of a step", fmt::format("{:.3f} ms", before.seconds * 1e3), fmt::format("{:.3f} ms", after.seconds * 1e3),
      before.seconds > 0 ? fmt::format("\u00d7{:.2f}", after.seconds / before.seconds) : "");
  add("ops executed", html::grouped(baseline.schedule.length()), html::grouped(decision.schedule.length()),
      html::change(baseline.schedule.length(), decision.schedule.length()));
  add("of them again", html::grouped(baseline.evaluation.recomputed), html::grouped(decision.evaluation.recomputed),
      "");
  const std::int64_t resident = problem.graph.resident_bytes();
  bytes("resident (weights, gradients, state)", resident, resident);
  return table;
}

}  // namespace

RunResult run(Backend& backend, const PreparedGraph& graph, const Decision& decision, const RunOptions& options) {
  const std::int64_t alignment = decision.plan.alignment;
  const auto execute = [&](const Decision& what) {
    return backend.execute({.graph = graph.prepared,
                            .schedule = what.schedule,
                            .plan = what.plan,
                            .precision = graph.precision,
                            .seed = options.seed,
                            .guard_bytes = what.guard_bytes,
                            .poison = options.poison,
                            .repeats = options.repeats,
                            .stop = options.stop});
  };
  RunResult result;
  result.baseline = decide_on_baseline(graph.prepared, {.alignment = alignment, .guard_bytes = decision.guard_bytes});
  result.baseline_run = execute(result.baseline);
  result.scheduled_run = execute(decision);
  result.comparison = compare(graph.prepared, result.baseline_run, result.scheduled_run);
  result.loss = loss_of(graph.prepared, result.scheduled_run);
  if (options.check_on_host)
    result.host_check = check_with_host(graph, result.scheduled_run, alignment, options.seed, options.stop);
  return result;
}

std::string run_trace(const core::Graph& graph, const Decision& decision, const RunResult& result) {
  const auto op_ns = [](const Execution& execution) {
    std::vector<double> ns;
    for (const double seconds : execution.report.op_seconds) ns.push_back(seconds * 1e9);
    return ns;
  };
  const std::vector<double> scheduled = op_ns(result.scheduled_run), baseline = op_ns(result.baseline_run);
  return core::perfetto_trace(graph, {&decision.schedule, &decision.plan, scheduled},
                              {&result.baseline.schedule, &result.baseline.plan, baseline});
}

std::string run_page(const Problem& problem, const Backend& backend, const Decision& decision, const RunResult& result,
                     const std::vector<solvers::Tradeoff>& tradeoffs) {
  const Decision& baseline = result.baseline;
  Report page = html::of_graph("cairn run", problem.graph, problem.name);
  page.summary += fmt::format(" \u00b7 solver {} \u00b7 {}", decision.solver, backend.device());
  page.schedules.front().plan = baseline.plan;
  add_schedule(page, {"schedule", decision.schedule, decision.plan}, decision.evaluation);
  add_memory_facts(page, problem, decision.predicted_peak, baseline.predicted_peak);
  add_cost_fact(page, problem, decision.evaluation);
  add_budget(page, problem, decision.budgeted_bytes);
  const bool identical = result.comparison.identical();
  page.facts.push_back({"Outputs", identical ? "identical" : "different", "of baseline and schedule",
                        identical ? ReportFact::Tone::good : ReportFact::Tone::bad});
  page.tradeoff = tradeoff_of(problem, tradeoffs, decision.predicted_peak, decision.evaluation.cost);
  page.tables.push_back(numbers_of(problem, decision, result, page.cost_unit));
  return report_page(page);
}

}  // namespace cairn::pipeline
