#include "cairn/pipeline/run.h"

#include <utility>

#include "cairn/core/formats/files.h"
#include "cairn/core/version.h"
#include "cairn/pipeline/report/html_report.h"

namespace cairn::pipeline {
namespace {

ReportRun report_run(const core::Graph& graph, const Decision& decision, const Execution& execution) {
  ReportRun run;
  run.predicted_peak_bytes = decision.predicted_peak;
  run.cost = decision.evaluation.cost;
  run.planned_bytes = decision.plan.bytes;
  run.measured_peak_bytes = execution.report.measured_peak_bytes;
  run.seconds = execution.report.seconds;
  run.steps = decision.schedule.length();
  run.recomputed = decision.evaluation.recomputed;
  run.memory = memory_curve(graph, decision.schedule);
  return run;
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
  const core::Graph& graph = problem.graph;
  ReportData data;
  data.graph = problem.name;
  data.solver = decision.solver;
  data.device = backend.device();
  data.version = core::kVersion;
  data.nodes = graph.node_count();
  data.edges = graph.edge_count();
  data.resident_bytes = graph.resident_bytes();
  data.budget_bytes = problem.budget;
  data.identical = result.comparison.identical();
  data.baseline = report_run(graph, result.baseline, result.baseline_run);
  data.scheduled = report_run(graph, decision, result.scheduled_run);
  data.buffers = report_buffers(graph, decision.schedule, decision.plan);
  data.arena_bytes = decision.plan.bytes;
  for (const auto& [peak, cost] : tradeoffs) data.pareto.push_back({peak, cost});
  return html_report(data);
}

}  // namespace cairn::pipeline
