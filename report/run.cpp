#include "cairn/pipeline/run.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/support/text.h"
#include "cairn/report/html/support/words.h"
#include "cairn/report/pages.h"
#include "cairn/report/perfetto.h"
#include "cairn/report/support/words.h"

namespace cairn::report {

std::string compared_text(const pipeline::Comparison& comparison) {
  const std::int64_t kept = comparison.outputs - comparison.sinks;
  std::vector<std::string> parts;
  if (kept > 0) {
    // A synthetic kernel computes no real result. Its output is a digest of its inputs, repeated up to the output's
    // size.
    const std::string what = comparison.synthetic == 0      ? "kept outputs"
                             : comparison.synthetic == kept ? "kept digests of synthetic kernels"
                                                            : fmt::format(
                                                                  "kept outputs, {} of them digests of synthetic "
                                                                  "kernels,",
                                                                  comparison.synthetic);
    parts.push_back(fmt::format("{} {} ({}) bit by bit", kept, what, core::format_bytes(comparison.bytes)));
  }
  if (comparison.sinks > 0)
    parts.push_back(fmt::format("{} digests of outputs that nobody reads or keeps", comparison.sinks));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string synthetic_note(const core::Graph& graph) {
  const std::int64_t synthetic = pipeline::synthetic_nodes(graph);
  if (synthetic == 0) return "";
  const std::string which =
      synthetic == graph.node_count() ? "" : fmt::format(" on {} of {} nodes", synthetic, graph.node_count());
  return fmt::format("synthetic kernels{}: memory is real, arithmetic is not", which);
}

std::string streams_note(const core::Graph& graph, const fit::Decision& decision, const runtime::Overlap& overlap) {
  const auto cost = [&](std::int64_t value) { return core::cost_text(value, graph.cost_unit()); };
  std::string text = fmt::format("by the costs, a step takes at least {} of {}, on any number of streams {}",
                                 cost(overlap.makespan), cost(overlap.cost), cost(overlap.critical_path));
  if (decision.overlap_steps > 0)
    text += fmt::format("; addresses apart for {} steps cost {}", decision.overlap_steps,
                        core::format_bytes(decision.overlap_bytes));
  return text;
}

std::string streams_text(const core::Graph& graph, const fit::Decision& decision, const runtime::Overlap& overlap) {
  return fmt::format("{}; {}", overlap.streams, streams_note(graph, decision, overlap));
}

std::string predicted_by(const core::Graph& graph) {
  const core::CostUnit& unit = graph.cost_unit();
  if (!unit.source.empty()) return unit.source;
  return unit.known() ? fmt::format("costs in {} of the graph's file", unit.name) : "costs of the graph's file";
}

std::string defect_of(const pipeline::RunResult& result) {
  if (const auto& check = result.host_check; check && !check->close)
    return fmt::format(
        "output '{}' differs from the host's by {:.2e} of its norm, and rounding explains no more than {:.2e}; please "
        "report this",
        check->worst_output, check->worst_error, check->worst_allowed);
  if (const pipeline::Execution& run = result.scheduled_run; run.host_measured_bytes != run.host_planned_bytes)
    return fmt::format("the copies on the host took {} bytes, but the plan has {}; please report this",
                       run.host_measured_bytes, run.host_planned_bytes);
  const pipeline::Comparison& comparison = result.comparison;
  if (result.identical() != false) return "";
  return fmt::format("{} of {} outputs differ from the baseline's, first '{}'; please report this",
                     comparison.different.size(), comparison.outputs, comparison.different.front());
}

std::string timing_text(const pipeline::RunResult& result) {
  const std::size_t count = result.scheduled_run.timings.size();
  const std::string each = result.baseline_run ? " each" : "";
  return fmt::format("{}, {}, {}",
                     count == 1 ? "one execution" + each : fmt::format("median of {} executions{}", count, each),
                     !result.baseline_run ? "of the schedule alone"
                     : result.interleaved ? "alternating"
                                          : "one schedule after the other, as there is no memory for both",
                     result.warmed_up ? "after one to warm up" : "without a warm-up, for lack of time");
}

std::vector<std::string> notes_of(const core::Graph& graph, const pipeline::RunResult& result) {
  std::vector<std::string> notes;
  if (const std::string note = synthetic_note(graph); !note.empty()) notes.push_back(note);
  if (!result.baseline_run)
    notes.push_back(
        fmt::format("the baseline was not executed, and nothing compared with it: {}", result.why_no_baseline));
  std::int64_t timings = 0, disturbed = 0;
  const auto add = [&](const pipeline::Execution& execution) {
    timings += static_cast<std::int64_t>(execution.timings.size());
    disturbed += pipeline::spread_of(execution).disturbed;
  };
  if (result.baseline_run) add(*result.baseline_run);
  add(result.scheduled_run);
  if (2 * disturbed > timings)
    notes.push_back(
        fmt::format("the machine was busy: other work disturbed {} of {} timed executions", disturbed, timings));
  return notes;
}

namespace {

ReportTable numbers_of(const fit::Problem& problem, const fit::Decision& decision, const pipeline::RunResult& result,
                       const std::string& cost_unit) {
  const fit::Decision& baseline = result.baseline;
  const runtime::StepReport& after = result.scheduled_run.report;
  ReportTable table{"Numbers",
                    "Resident bytes are not counted in the budget, because every schedule needs them. Time: " +
                        timing_text(result) + ".",
                    {"", "baseline", "schedule", "change"},
                    {}};
  const auto add = [&](std::string name, std::string from, std::string to, std::string change) {
    table.rows.push_back({{std::move(name), std::move(from), std::move(to), std::move(change)}});
  };
  const auto bytes = [&](std::string name, std::optional<std::int64_t> from, std::int64_t to) {
    add(std::move(name), from ? core::format_bytes(*from) : "", core::format_bytes(to),
        from ? html::change(*from, to) : "");
  };
  const runtime::StepReport* before = result.baseline_run ? &result.baseline_run->report : nullptr;
  bytes("predicted peak", baseline.predicted_peak, decision.predicted_peak);
  bytes("planned arena", baseline.executed_plan().bytes, decision.executed_plan().bytes);
  bytes("measured high-water mark",
        result.baseline_run ? std::optional(result.baseline_run->measured_peak_bytes) : std::nullopt,
        result.scheduled_run.measured_peak_bytes);
  if (!decision.schedule.transfers.empty()) {
    add("planned on the host", "", core::format_bytes(decision.executed_plan().host_bytes), "");
    add("measured on the host", "", core::format_bytes(result.scheduled_run.host_measured_bytes), "");
  }
  const std::int64_t from = baseline.evaluation.cost, to = decision.evaluation.cost;
  const std::string& source = problem.graph.cost_unit().source;
  add(source.empty() ? "cost" : fmt::format("cost ({})", source), html::cost_text(from, cost_unit),
      html::cost_text(to, cost_unit), html::change(from, to));
  const auto milliseconds = [](double seconds) { return fmt::format("{:.3f} ms", seconds * 1e3); };
  add("time of a step, on this machine", before != nullptr ? milliseconds(before->seconds) : "",
      milliseconds(after.seconds),
      before != nullptr && before->seconds > 0 && result.warmed_up
          ? fmt::format("\u00d7{:.2f}", after.seconds / before->seconds)
          : "");
  add("ops executed", html::grouped(baseline.schedule.length()), html::grouped(decision.schedule.length()),
      html::change(baseline.schedule.length(), decision.schedule.length()));
  add("recomputed", html::grouped(baseline.evaluation.recomputed), html::grouped(decision.evaluation.recomputed), "");
  const std::int64_t resident = problem.graph.resident_bytes();
  bytes("resident (weights, gradients, state)", resident, resident);
  return table;
}

}  // namespace

std::string run_trace(const core::Graph& graph, const fit::Decision& decision, const pipeline::RunResult& result) {
  const auto op_ns = [](const pipeline::Execution& execution) {
    std::vector<double> ns;
    for (const double seconds : execution.report.op_seconds) ns.push_back(seconds * 1e9);
    return ns;
  };
  const std::vector<double> scheduled = op_ns(result.scheduled_run);
  if (!result.baseline_run)
    return report::perfetto_trace(graph, {&decision.schedule, &decision.executed_plan(), scheduled});
  const std::vector<double> baseline = op_ns(*result.baseline_run);
  return report::perfetto_trace(graph, {&decision.schedule, &decision.executed_plan(), scheduled},
                                {&result.baseline.schedule, &result.baseline.executed_plan(), baseline});
}

std::string run_page(const fit::Problem& problem, const pipeline::Backend& backend, const fit::Decision& decision,
                     const pipeline::RunResult& result, const std::vector<solvers::Tradeoff>& tradeoffs) {
  const fit::Decision& baseline = result.baseline;
  Report page = html::of_graph("cairn run", problem.graph, problem.name);
  page.summary += fmt::format(" \u00b7 solver {} \u00b7 {}", decision.solver, backend.device());
  page.schedules.front().plan = baseline.executed_plan();
  add_schedule(page, {"schedule", decision.schedule, decision.executed_plan()}, decision.evaluation);
  add_memory_facts(page, problem, decision.predicted_peak, baseline.predicted_peak);
  add_cost_fact(page, problem, decision.evaluation);
  add_budget(page, problem, decision.memory());
  add_streams_fact(page, problem.graph, decision, result.scheduled_run.overlap);
  page.notes = notes_of(problem.graph, result);
  if (const std::optional<bool> identical = result.identical()) {
    page.facts.push_back({"Outputs", *identical ? "identical" : "different", compared_text(result.comparison),
                          *identical ? ReportFact::Tone::good : ReportFact::Tone::bad});
  } else {
    page.facts.push_back({"Outputs", "not compared", "there is no memory for the baseline"});
  }
  page.tradeoff = tradeoff_of(problem, tradeoffs, decision.predicted_peak, decision.evaluation.cost);
  page.tables.push_back(numbers_of(problem, decision, result, page.cost_unit));
  return report_page(page);
}

}  // namespace cairn::report
