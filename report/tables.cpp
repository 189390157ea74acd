#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "cairn/core/cost_unit.h"
#include "cairn/core/link.h"
#include "cairn/core/support/text.h"
#include "cairn/report/support/words.h"

// Makes the tables that `info`, `run` and `simulate` print.
namespace cairn::report {
namespace {

/// Formats the change from one time to another, as "+8.7%".
std::string percent_text(double before, double after) { return fmt::format("{:+.1f}%", percent_above(after, before)); }

std::string host_check_text(const pipeline::Closeness& check) {
  const std::int64_t decided = check.outputs - check.undecided;
  const std::string rest =
      check.undecided > 0 ? fmt::format("; {} too sensitive to rounding to be compared", check.undecided) : "";
  if (check.worst_output.empty()) return fmt::format("{} kept outputs have the host's bits{}\n", decided, rest);
  return fmt::format("{} kept outputs agree with the host's; the worst, '{}', within {:.1e} (allowed {:.1e}){}\n",
                     decided, check.worst_output, check.worst_error, check.worst_allowed, rest);
}

/// Says which outputs were compared and found identical. The text is empty if nothing was compared. Must not be called
/// if outputs differ.
std::string comparison_text(const pipeline::RunResult& result) {
  if (!result.identical()) return "";
  if (result.comparison.outputs == 0) return "nothing to compare: the graph has no outputs\n";
  return fmt::format("compared {}: identical\n", compared_text(result.comparison));
}

/// Says which times the graph's costs predict. The text is empty if the costs are not times. The text is also empty if
/// the costs were measured on the device that executed the schedule, because run_rows() then shows the predicted times.
std::string prediction_text(const pipeline::RunOutcome& run) {
  const core::Graph& graph = run.task.problem.graph;
  const auto before = pipeline::predicted_seconds(graph, run.result.baseline);
  const auto after = pipeline::predicted_seconds(graph, run.decision);
  if (!before || pipeline::predicts(graph, run.backend, run.precision)) return "";
  return fmt::format("predicted by the graph's costs: {}, then {} ({}); costs come from another machine: {}\n",
                     core::duration_text(*before), core::duration_text(*after), percent_text(*before, *after),
                     predicted_by(graph));
}

/// Returns the table of a run, with a column for the baseline and a column for the schedule. Measured figures of the
/// baseline are missing if the baseline was not executed.
Rows run_rows(const pipeline::RunOutcome& run) {
  const core::Graph& graph = run.task.problem.graph;
  const fit::Decision &after = run.decision, &before = run.result.baseline;
  const pipeline::Execution& after_run = run.result.scheduled_run;
  const pipeline::Execution* before_run = run.result.baseline_run ? &*run.result.baseline_run : nullptr;
  Rows rows = {{"", "baseline", "schedule", "change"}};
  const auto bytes = [&](const char* name, std::optional<std::int64_t> a, std::int64_t b) {
    rows.push_back({name, a ? core::format_bytes(*a) : "-", core::format_bytes(b),
                    a ? fmt::format("{:+.1f}%", increase_pct(b, *a)) : ""});
  };
  const auto times = [&](const char* name, std::optional<double> a, double b, bool comparable) {
    rows.push_back(
        {name, a ? core::duration_text(*a) : "-", core::duration_text(b), a && comparable ? percent_text(*a, b) : ""});
  };
  const auto of_baseline = [&](auto member) {
    return before_run != nullptr ? std::optional(before_run->report.*member) : std::nullopt;
  };
  const auto cost = [&](const fit::Decision& decision) {
    return core::cost_text(decision.evaluation.cost, graph.cost_unit());
  };
  const auto range = [](const pipeline::Execution& execution) {
    const pipeline::Spread spread = pipeline::spread_of(execution);
    return fmt::format("{} to {}", core::duration_text(spread.least), core::duration_text(spread.most));
  };
  bytes("predicted peak", before.predicted_peak, after.predicted_peak);
  bytes("planned", before.executed_plan().bytes, after.executed_plan().bytes);
  bytes("measured", before_run != nullptr ? std::optional(before_run->measured_peak_bytes) : std::nullopt,
        after_run.measured_peak_bytes);
  if (!after.schedule.transfers.empty()) {
    rows.push_back({"planned on the host", "-", core::format_bytes(after.executed_plan().host_bytes), ""});
    rows.push_back({"measured on the host", "-", core::format_bytes(after_run.host_measured_bytes), ""});
  }
  rows.push_back({"cost", cost(before), cost(after),
                  fmt::format("{:+.2f}%", increase_pct(after.evaluation.cost, before.evaluation.cost))});
  rows.push_back({"steps", std::to_string(before.schedule.length()), std::to_string(after.schedule.length()),
                  fmt::format("{} recomputed", after.evaluation.recomputed)});
  if (pipeline::predicts(graph, run.backend, run.precision))
    times("predicted time", pipeline::predicted_seconds(graph, before), *pipeline::predicted_seconds(graph, after),
          true);
  // A first execution takes longer than later executions. So the two times are compared only if executions to warm up
  // have run before.
  times("time", of_baseline(&runtime::StepReport::seconds), after_run.report.seconds, run.result.warmed_up);
  if (after_run.timings.size() > 1)
    rows.push_back({"from, to", before_run != nullptr ? range(*before_run) : "-", range(after_run), ""});
  return rows;
}

/// Draws the histogram with at most kRows bars, one per row, by merging neighbouring bins.
std::string histogram_text(const pipeline::Histogram& histogram, std::int64_t valid) {
  constexpr std::int64_t kRows = 12, kLongest = 40;  // kRows: most bars; kLongest: length of the longest bar
  if (histogram.counts.empty()) return "";
  const auto shown = static_cast<std::int64_t>(histogram.counts.size());
  const std::int64_t together = (shown + kRows - 1) / kRows;
  std::vector<std::int64_t> rows;
  for (std::int64_t b = 0; b < shown; ++b) {
    if (b % together == 0) rows.push_back(0);
    rows.back() += histogram.counts[static_cast<std::size_t>(b)];
  }
  const std::int64_t most = *std::max_element(rows.begin(), rows.end());
  Rows cells = {{"peak from", "candidates", ""}};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto length =
        static_cast<std::size_t>(std::lround(static_cast<double>(kLongest) * fraction(rows[row], most)));
    const std::int64_t begin = histogram.from + static_cast<std::int64_t>(row) * together * histogram.width;
    cells.push_back({core::format_bytes(begin), fmt::format("{:5.1f}%", 100 * fraction(rows[row], valid)),
                     rows[row] > 0 ? std::string(std::max<std::size_t>(1, length), '#') : ""});
  }
  return "\n" + format_table(cells, true);
}

}  // namespace

Rows info_rows(const fit::Task& task, const pipeline::Info& info, const pipeline::DeviceAdvice* device) {
  const fit::Problem& problem = task.problem;
  Rows rows = {{"graph", problem.name},
               {"nodes, edges", fmt::format("{}, {}", problem.graph.node_count(), problem.graph.edge_count())},
               {"resident", resident_text(pipeline::resident_bytes(problem.graph)) + "; not counted in the budget"},
               {"baseline peak", baseline_peak_text(problem, task.alignment)},
               {"baseline cost", baseline_cost_text(problem)},
               {"lower bound", bytes_text(task.rounded.plan_bound())},
               {"because", lower_bound_reason(task.rounded.of_plans())},
               {"least budget known", least_text(task, info.least)}};
  if (device != nullptr) rows.push_back({"device", share_text(device->share, device->share.arena())});
  if (const auto& verdict = info.verdict) {
    rows.push_back({"budget", bytes_text(*problem.budget) + ": " + fit_text(task, *verdict)});
    if (verdict->fits != false) rows.push_back({"cost in it", cost_text(task, *verdict)});
  }
  if (device != nullptr && device->least_memory)
    rows.push_back({"least device", share_text(device->share, info.least.memory())});
  if (device != nullptr && device->largest_batch) rows.push_back({"largest batch", batch_text(*device->largest_batch)});
  return rows;
}

std::string run_table(const pipeline::RunOutcome& run) {
  const fit::Problem& problem = run.task.problem;
  const core::Graph& graph = problem.graph;
  const fit::Decision& decision = run.decision;
  std::string text = fmt::format("{}: {} nodes, {} edges, on {} ({})\n", problem.name, graph.node_count(),
                                 graph.edge_count(), run.backend.name(), run.backend.device());
  if (problem.budget)
    text += fmt::format("budget {}, solver {}; resident {}, not counted in the budget\n", bytes_text(*problem.budget),
                        decision.solver, core::format_bytes(graph.resident_bytes()));
  text += "\n" + format_table(run_rows(run), true) + "\n";
  text += fmt::format("time: {}\n", timing_text(run.result)) + prediction_text(run);
  if (const auto& overlap = run.result.scheduled_run.overlap)
    text += fmt::format("streams: {}; the baseline ran on one\n", streams_text(graph, decision, *overlap));
  for (const std::string& note : notes_of(graph, run.result)) text += note + "\n";
  if (run.answer != nullptr) {
    text += fmt::format("the search ended after {:.2f} s, {}\n", run.answer->found.seconds,
                        stop_text(run.answer->found.solution.stop));
    text += fmt::format("{}\n", fmt::join(proof_row(run.task, *run.answer), ": "));
  }
  if (run.result.loss) text += fmt::format("loss {:.6g}\n", *run.result.loss);
  if (decision.guard_bytes > 0)
    text += fmt::format("planned with guards; without them, as the budget counts, {}\n", bytes_text(decision.memory()));
  if (run.result.host_check) text += host_check_text(*run.result.host_check);
  return text + comparison_text(run.result);
}

std::string sweep_table(const fit::Problem& problem, const pipeline::Swept& swept,
                        const pipeline::SweepOrigin& origin) {
  const sim::Tally& tally = swept.tally;
  const sim::TallyCounts& counts = tally.counts();
  const auto against_baseline = [&](std::int64_t peak) {
    return fmt::format("{:.1f}% of the baseline's", 100 + increase_pct(peak, problem.baseline.peak));
  };
  Rows rows = {
      {"graph",
       fmt::format("{}: {} nodes, {} edges", problem.name, problem.graph.node_count(), problem.graph.edge_count())},
      {"on", fmt::format("{} ({}){}", origin.backend, origin.device,
                         origin.ranks > 1 ? fmt::format(", {} processes", origin.ranks) : "")},
      {"candidates",
       fmt::format("{} in {:.2f} s, {:.3g} a second{}{}", count_text(tally.candidates()), swept.result.seconds,
                   swept.per_second(),
                   swept.resumed_from ? fmt::format(", {} of them before", count_text(*swept.resumed_from)) : "",
                   swept.timed_out ? "; the time limit ended it" : "")}};
  if (counts.invalid > 0) rows.push_back({"invalid", count_text(counts.invalid)});
  const char* const one = origin.file.empty() ? "candidate" : "line";
  for (const auto& [line, what] : swept.invalid) rows.push_back({"", fmt::format("{} {}: {}", one, line, what)});
  if (swept.bad_lines > 0) rows.push_back({"bad lines", count_text(swept.bad_lines)});
  for (const auto& [line, what] : swept.bad) rows.push_back({"", fmt::format("line {}: {}", line, what)});
  rows.push_back({"baseline", bytes_text(problem.baseline.peak)});
  rows.push_back({"lower bound", bytes_text(problem.lower_bound)});
  if (counts.valid == 0) return format_table(rows) + "no candidate is valid\n";
  const sim::Entry& best = tally.top().front();
  rows.push_back(
      {"least peak", fmt::format("{}, {}, cost {}, candidate {}", bytes_text(best.peak), against_baseline(best.peak),
                                 cost_and_increase(problem, best.cost), best.index)});
  rows.push_back({"mean peak", core::format_bytes(static_cast<std::int64_t>(tally.mean_peak()))});
  for (const std::int32_t percent : {1, 50, 99, 100}) {
    const std::int64_t peak = tally.quantile(percent);
    rows.push_back({percent == 100 ? "most" : fmt::format("{}% up to", percent),
                    fmt::format("{}, {}", core::format_bytes(peak), against_baseline(peak))});
  }
  if (const auto& host = problem.graph.host_memory()) {
    const sim::Spread &makespans = tally.makespans(), &host_peaks = tally.host_peaks();
    const auto of = [&](std::int32_t percent) { return cost_and_increase(problem, makespans.quantile(percent)); };
    rows.push_back({"link", core::describe(host->link)});
    rows.push_back({"makespan", fmt::format("least {}, half up to {}, most {}", of(0), of(50), of(100))});
    rows.push_back(
        {"on the host",
         fmt::format("least {}, half up to {}, most {}", core::format_bytes(host_peaks.quantile(0)),
                     core::format_bytes(host_peaks.quantile(50)), core::format_bytes(host_peaks.quantile(100)))});
  }
  if (const std::string budgets = budgets_text(problem); !budgets.empty())
    rows.push_back({"budget", fmt::format("{}: {} candidates within it ({:.3g}%)", budgets, count_text(counts.within),
                                          100 * fraction(counts.within, counts.valid))});
  rows.push_back(
      {"Pareto set", fmt::format("{} of peak and cost", count_text(static_cast<std::int64_t>(tally.front().size())))});
  if (const auto& found = swept.undominated)
    rows.push_back(
        {"undominated", fmt::format("{}{} of the profiles of {} candidates", count_text(found->profiles().size()),
                                    found->complete() ? "" : " or more", count_text(found->candidates()))});
  return format_table(rows) + histogram_text(pipeline::shown_histogram(tally), counts.valid);
}

}  // namespace cairn::report
