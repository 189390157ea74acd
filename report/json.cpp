#include "cairn/report/support/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/cost_unit.h"
#include "cairn/core/link.h"
#include "cairn/core/profile.h"
#include "cairn/core/threads.h"
#include "cairn/pipeline/backend.h"
#include "cairn/pipeline/device_memory.h"
#include "cairn/pipeline/info.h"
#include "cairn/report/support/words.h"
#include "cairn/solvers/fit/curve.h"

namespace cairn::report {
namespace {

Json point_json(const fit::Problem& problem, const fit::CurvePoint& point) {
  return {{"budget_bytes", point.budget},
          {"peak_bytes", point.evaluation.peak},
          {"planned_bytes", point.memory()},
          {"cost", point.evaluation.cost},
          {"cost_increase_pct", increase_pct(point.evaluation.cost, problem.baseline.cost)}};
}

Json knee_json(const fit::Problem& problem, const fit::Curve& curve) {
  const BesideKnee sides = beside_knee(curve);
  const auto side = [&](const fit::CurvePoint* point) {
    return point != nullptr ? point_json(problem, *point) : Json(nullptr);
  };
  Json json = point_json(problem, curve.points[*curve.knee]);
  json["more_memory"] = side(sides.more_memory);
  json["less_memory"] = side(sides.less_memory);
  json["definition"] = fit::kKneeDefinition;
  return json;
}

Json curve_point_json(const fit::Problem& problem, const fit::CurvePoint& point, bool knee, bool peak_only) {
  const auto if_known = [&](auto value) { return point.known() ? Json(value) : Json(nullptr); };
  const core::Evaluation& found = point.evaluation;
  const bool bounded = point.status != solvers::Status::infeasible;
  return {{"budget_bytes", point.budget},
          {"budget_pct", share_pct(problem, point.budget)},
          {"status", solvers::to_string(point.status)},
          {"peak_bytes", if_known(found.peak)},
          {"planned_bytes", point.known() && !peak_only ? Json(point.memory()) : Json(nullptr)},
          {"cost", if_known(found.cost)},
          {"cost_increase_pct", if_known(increase_pct(found.cost, problem.baseline.cost))},
          {"lower_bound_cost", bounded ? Json(point.cost_bound.value) : Json(nullptr)},
          {"lower_bound_cost_scope", solvers::describe(point.cost_bound.scope)},
          {"gap_pct", if_known(fit::gap_pct(found.cost, point.cost_bound))},
          {"recomputed", if_known(found.recomputed)},
          {"steps", if_known(point.schedule.length())},
          {"knee", knee}};
}

Json reached_json(const fit::LeastBudget& by, std::int64_t baseline_cost) {
  const core::Evaluation& found = by.evaluation;
  return {{"planned_bytes", by.plan ? Json(by.plan->bytes) : Json(nullptr)},
          {"peak_bytes", found.peak},
          {"cost", found.cost},
          {"cost_increase_pct", increase_pct(found.cost, baseline_cost)},
          {"recomputed", found.recomputed},
          {"steps", by.schedule.length()}};
}

void add_verdict(Json& json, const fit::Task& task, const pipeline::BudgetVerdict& verdict) {
  const bool bounded = verdict.fits != false;
  json["fits"] = or_null(verdict.fits);
  json["fits_scope"] = solvers::describe(verdict.scope);
  json["fits_with_solver"] = verdict.fits_with.empty() ? Json(nullptr) : Json(verdict.fits_with);
  json["verdict"] = fit_text(task, verdict);
  json["means"] = verdict.means ? Json(to_string(*verdict.means)) : Json(nullptr);
  json["within_budget"] = verdict.by ? reached_json(*verdict.by, task.problem.baseline.cost) : Json(nullptr);
  json["recomputed"] = verdict.by ? Json(verdict.by->evaluation.recomputed) : Json(nullptr);
  json["cost_within_budget"] = verdict.by ? Json(verdict.by->evaluation.cost) : Json(nullptr);
  json["lower_bound_cost"] = bounded ? Json(verdict.cost_bound.value) : Json(nullptr);
  json["lower_bound_cost_scope"] = solvers::describe(verdict.cost_bound.scope);
  json["gap_pct"] = verdict.by ? Json(fit::gap_pct(verdict.by->evaluation.cost, verdict.cost_bound)) : Json(nullptr);
}

Json entry_json(const sim::Entry& entry) {
  return {{"index", entry.index}, {"peak_bytes", entry.peak}, {"cost", entry.cost}};
}

Json entries_json(const std::vector<sim::Entry>& entries) {
  Json list = Json::array();
  for (const sim::Entry& entry : entries) list.push_back(entry_json(entry));
  return list;
}

Json remarks_json(const std::vector<pipeline::Remark>& remarks) {
  Json list = Json::array();
  for (const auto& [line, what] : remarks) list.push_back({{"line", line}, {"what", what}});
  return list;
}

Json histogram_json(const pipeline::Histogram& histogram) {
  if (histogram.counts.empty()) return nullptr;
  return {{"from", histogram.from}, {"width", histogram.width}, {"counts", histogram.counts}};
}

/// Returns the figures of one schedule, which is either the baseline or the schedule of the decision. `execution` is
/// nullptr if this schedule was not executed; its measured figures are null then.
Json executed_json(const core::Graph& graph, const fit::Decision& decision, const pipeline::Execution* execution) {
  const runtime::StepReport report = execution != nullptr ? execution->report : runtime::StepReport();
  const pipeline::Spread spread = execution != nullptr ? pipeline::spread_of(*execution) : pipeline::Spread();
  const auto if_executed = [&](auto value) { return execution != nullptr ? Json(value) : Json(nullptr); };
  Json json = {
      {"peak_bytes", decision.evaluation.peak},
      {"predicted_peak_bytes", decision.predicted_peak},
      {"planned_bytes", decision.executed_plan().bytes},
      {"measured_peak_bytes", if_executed(execution != nullptr ? execution->measured_peak_bytes : 0)},
      {"live_peak_bytes", if_executed(report.live_peak_bytes)},
      {"cost", decision.evaluation.cost},
      {"predicted_seconds", or_null(pipeline::predicted_seconds(graph, decision))},
      {"seconds", if_executed(report.seconds)},
      {"seconds_min", if_executed(spread.least)},
      {"seconds_max", if_executed(spread.most)},
      {"executions", execution != nullptr ? execution->timings.size() : 0},
      {"disturbed_executions", spread.disturbed},
      {"op_seconds_sum", if_executed(std::accumulate(report.op_seconds.begin(), report.op_seconds.end(), 0.0))},
      {"steps", decision.schedule.length()},
      {"recomputed", decision.evaluation.recomputed}};
  if (!decision.schedule.transfers.empty()) {
    json["host_planned_bytes"] = decision.executed_plan().host_bytes;
    json["host_measured_bytes"] = if_executed(execution != nullptr ? execution->host_measured_bytes : 0);
  }
  return json;
}

Json closeness_json(const pipeline::Closeness& closeness) {
  return {{"outputs", closeness.outputs},
          {"undecided", closeness.undecided},
          {"worst_output", closeness.worst_output},
          {"worst_error", closeness.worst_error},
          {"allowed_error", closeness.worst_allowed},
          {"passed", closeness.close}};
}

}  // namespace

std::string json_text(const Json& object) { return object.dump(2, ' ', false, Json::error_handler_t::replace); }

Json describe(const fit::Problem& problem) {
  Json json;
  json["graph"] = problem.name;
  json["fingerprint"] = problem.graph.fingerprint();
  json["nodes"] = problem.graph.node_count();
  json["edges"] = problem.graph.edge_count();
  json["resident_bytes"] = problem.graph.resident_bytes();
  json["budget_bytes"] = or_null(problem.budget);
  json["baseline_peak_bytes"] = problem.baseline.peak;
  json["hundred_percent_bytes"] = problem.hundred_percent;
  json["baseline_cost"] = problem.baseline.cost;
  json["cost_unit"] = core::to_string(problem.graph.cost_unit());
  json["cost_source"] = problem.graph.cost_unit().source;
  json["lower_bound_peak_bytes"] = problem.lower_bound;
  return json;
}

void add_limits(Json& json, const fit::Problem& problem, const fit::LeastBudget& least) {
  const core::PeakBound needs = core::explain_peak_lower_bound(problem.graph);
  Json holds = Json::array();
  for (const core::PeakBound::Part& part : needs.parts) {
    const bool value = part.value != core::kNoValue;
    holds.push_back({{"name", value ? problem.graph.value_name(part.value) : problem.graph.name(needs.node)},
                     {"bytes", part.bytes},
                     {"kind", core::to_string(part.kind)}});
  }
  json["lower_bound_reason"] = {
      {"node", needs.node == core::kNoNode ? Json(nullptr) : Json(problem.graph.name(needs.node))},
      {"bytes", needs.bytes},
      {"holds", std::move(holds)},
      {"text", lower_bound_reason(problem)}};
  json["least_feasible_bytes"] = least.memory();
  json["least_feasible_solver"] = least.solver;
}

void add_proof(Json& json, const fit::Task& task, const fit::Answer& answer) {
  const solvers::Solution& solution = answer.found.solution;
  const solvers::Status status =
      answer.success || solution.status == solvers::Status::infeasible ? solution.status : solvers::Status::not_found;
  json["objective"] = to_string(task.objective);
  json["max_cost"] = or_null(task.max_cost);
  json["status"] = solvers::to_string(status);
  json["stopped"] = solvers::to_string(solution.stop);
  json["scope"] = solvers::describe(solution.scope);
  json["lower_bound_scope"] = solvers::describe(solution.peak_bound.scope);
  json["lower_bound_cost"] = solution.cost_bound.value;
  json["lower_bound_cost_scope"] = solvers::describe(solution.cost_bound.scope);
  json["gap_pct"] = json["gap_of"] = json["proved"] = nullptr;
  if (!answer.success) return;
  const fit::Gap gap = fit::gap_of(task, answer);
  json["gap_pct"] = gap.pct();
  json["gap_of"] = gap.of_what();
  if (status == solvers::Status::optimal) json["proved"] = proved_text(task, answer);
}

Json answer_json(const fit::Task& task, std::string_view solver, const fit::Answer& answer,
                 const fit::LeastBudget& least, bool interrupted) {
  const solvers::Solution& solution = answer.found.solution;
  const bool shown = answer.has_schedule();
  const core::Evaluation found = core::evaluate(task.problem.graph, solution.schedule);
  const auto if_any = [&](auto value) { return shown ? Json(value) : Json(nullptr); };
  Json json = describe(task.problem);
  json["solver"] = solver;
  json["recomputes"] = solution.scope.max_occurrences != 1;
  add_proof(json, task, answer);
  add_limits(json, task.problem, least);
  json["peak_bytes"] = if_any(found.peak);
  json["cost"] = if_any(found.cost);
  json["cost_increase_pct"] = if_any(increase_pct(found.cost, task.problem.baseline.cost));
  json["recomputed"] = if_any(found.recomputed);
  json["steps"] = if_any(solution.schedule.length());
  json["planned_bytes"] = answer.found.plan ? Json(answer.found.plan->bytes) : Json(nullptr);
  json["plan_fits"] = answer.found.plan ? Json(!task.problem.budget || answer.found.plan->bytes <= *task.problem.budget)
                                        : Json(nullptr);
  json["alignment"] = task.alignment;
  json["valid"] = shown && found.valid();
  add_transfers(json, task.problem.graph, shown ? &solution.schedule : nullptr,
                answer.found.plan ? &*answer.found.plan : nullptr);
  if (answer.curve) json["knee"] = knee_json(task.problem, *answer.curve);
  json["solve_seconds"] = answer.found.seconds;
  json["best_seconds"] = solution.best_seconds;
  json["timed_out"] = solution.timed_out;
  json["interrupted"] = interrupted;
  return json;
}

Json certificate_file(const fit::Task& task, const fit::Answer& answer, const solvers::Certificate& certificate) {
  const core::Graph& graph = task.searched().graph;
  return {{"format", "cairn.certificate"},
          {"version", 1},
          {"fingerprint", task.problem.graph.fingerprint()},
          {"alignment", task.plans_fit() ? task.alignment : 1},
          {"budget_bytes", certificate.budget},
          {"order", certificate.order == solvers::OrderRule::free ? "free" : "input"},
          {"least_cost", or_null(certificate.least_cost)},
          {"moments", certificate.proof.moments},
          {"prices", certificate.proof.prices},
          {"reach", certificate.proof.reach},
          {"steps", answer.success ? Json(answer.found.solution.schedule.steps) : Json(nullptr)},
          {"graph", Json::parse(core::graph_to_json(graph))}};
}

Json certificate_json(const fit::Task& task, const fit::Answer& answer, const solvers::Certificate& certificate) {
  return {{"budget_bytes", certificate.budget},
          {"least_cost", or_null(certificate.least_cost)},
          {"proves_bound", fit::proves_bound(task, answer, certificate)},
          {"moments", certificate.proof.moments.size()}};
}

Json curve_json(const fit::Problem& problem, std::string_view solver, std::int64_t alignment, const fit::Curve& curve,
                bool interrupted) {
  Json json = describe(problem);
  json.erase("budget_bytes");
  json["solver"] = solver;
  json["alignment"] = alignment;
  json["peak_only"] = curve.peak_only;
  json["points"] = Json::array();
  for (std::size_t i = 0; i < curve.points.size(); ++i)
    json["points"].push_back(curve_point_json(problem, curve.points[i], curve.knee == i, curve.peak_only));
  json["knee"] = curve.knee ? json["points"][*curve.knee] : Json(nullptr);
  json["knee_definition"] = fit::kKneeDefinition;
  json["met"] = Json::array();
  for (const solvers::Tradeoff& met : curve.met) json["met"].push_back({{"peak_bytes", met.peak}, {"cost", met.cost}});
  json["passes"] = curve.passes;
  json["stopped"] = solvers::to_string(curve.stop);
  json["solve_seconds"] = curve.seconds;
  json["interrupted"] = interrupted;
  return json;
}

Json to_json(const pipeline::ResidentBytes& resident) {
  return {{"weights", resident.weights}, {"gradients", resident.gradients}, {"optimizer", resident.optimizer},
          {"inputs", resident.inputs},   {"constants", resident.constants}, {"unlisted", resident.unlisted}};
}

Json to_json(const fit::LargestBatch& found) {
  return {{"batch", found.batch},
          {"batch_of_baseline", found.as_it_is},
          {"refused", found.refused > 0 ? Json(found.refused) : Json(nullptr)},
          {"refused_proved", found.refusal_proved},
          {"timed_out", found.timed_out}};
}

Json to_json(const pipeline::DeviceAdvice& device) {
  Json json = {{"memory_bytes", device.share.device},
               {"resident_bytes", device.share.resident.total()},
               {"workspace_bytes", device.share.workspace},
               {"context_bytes", device.share.context},
               {"arena_bytes", device.share.arena()}};
  if (device.least_memory) json["least_memory_bytes"] = *device.least_memory;
  if (device.largest_batch) json["largest_batch"] = to_json(*device.largest_batch);
  return json;
}

Json least_budget_json(const fit::LeastBudget& least, std::int64_t baseline_cost) {
  Json json = reached_json(least, baseline_cost);
  json["proved"] = least.proved();
  json["proved_scope"] = solvers::describe(least.bound.scope);
  return json;
}

Json info_json(const fit::Task& task, const pipeline::Info& info, const pipeline::DeviceAdvice* device,
               bool interrupted) {
  const fit::Problem& problem = task.problem;
  Json json = describe(problem);
  json["alignment"] = task.alignment;
  json["lower_bound_planned_bytes"] = task.rounded.plan_bound();
  json["resident"] = to_json(pipeline::resident_bytes(problem.graph));
  json["cost_at_least_budget"] = info.least.evaluation.cost;
  json["least_budget"] = least_budget_json(info.least, problem.baseline.cost);
  if (info.verdict) add_verdict(json, task, *info.verdict);
  add_limits(json, problem, info.least);
  if (device != nullptr) json["device"] = to_json(*device);
  json["interrupted"] = interrupted;
  return json;
}

namespace {

Json undominated_json(const sim::Undominated& found) {
  Json profiles = Json::array();
  for (std::int64_t i = 0; i < found.profiles().size(); ++i) {
    const core::CanonicalProfile profile = found.profiles().profile(i);
    Json segments = Json::array();
    for (const core::Segment& segment : profile.segments) segments.push_back({segment.rise, segment.drop});
    profiles.push_back({{"index", found.numbers()[static_cast<std::size_t>(i)]},
                        {"start_bytes", profile.start},
                        {"peak_bytes", profile.peak()},
                        {"end_bytes", profile.end()},
                        {"segments", std::move(segments)}});
  }
  return {{"candidates", found.candidates()}, {"complete", found.complete()}, {"profiles", std::move(profiles)}};
}

Json spread_json(const sim::Spread& spread) {
  Json json{{"mean", spread.mean()}};
  for (const std::int32_t percent : pipeline::kPercents)
    json[fmt::format("p{}", percent)] = spread.count() > 0 ? Json(spread.quantile(percent)) : Json(nullptr);
  return json;
}

}  // namespace

Json sweep_json(const fit::Problem& problem, const pipeline::Swept& swept, const pipeline::SweepOrigin& origin) {
  const sim::Tally& tally = swept.tally;
  const sim::TallyCounts& counts = tally.counts();
  const bool any = counts.valid > 0;
  const auto if_any = [&](auto value) { return any ? Json(value) : Json(nullptr); };
  Json json = describe(problem);
  json["backend"] = origin.backend;
  json["device"] = origin.device;
  json["ranks"] = origin.ranks;
  json["source"] = origin.source();
  json["seed"] = origin.random ? Json(origin.random->seed) : Json(nullptr);
  json["moves"] = origin.random ? Json(origin.random->moves) : Json(nullptr);
  if (const auto& host = problem.graph.host_memory()) {
    json["link"] = core::to_string(host->link);
    json["transfers"] = origin.random ? Json(origin.random->transfers) : Json(nullptr);
  }
  json["candidates"] = tally.candidates();
  json["valid"] = counts.valid;
  json["invalid"] = counts.invalid;
  json["invalid_candidates"] = remarks_json(swept.invalid);
  json["bad_lines"] = swept.bad_lines;
  json["bad"] = remarks_json(swept.bad);
  json["seconds"] = swept.result.seconds;
  json["candidates_per_second"] = swept.per_second();
  json["best"] = any ? entry_json(tally.top().front()) : Json(nullptr);
  json["top"] = entries_json(tally.top());
  json["pareto"] = entries_json(tally.front());
  json["mean_peak_bytes"] = if_any(tally.mean_peak());
  json["mean_cost"] = if_any(tally.mean_cost());
  json["least_cost"] = if_any(counts.least_cost);
  json["most_cost"] = if_any(counts.most_cost);
  Json quantiles;
  for (const std::int32_t percent : pipeline::kPercents)
    quantiles[fmt::format("p{}", percent)] = if_any(tally.quantile(percent));
  json["quantiles"] = quantiles;
  json["quantile_precision_bytes"] = tally.options().width() - 1;
  if (problem.graph.host_memory()) {
    json["makespan"] = spread_json(tally.makespans());
    json["host_peak_bytes"] = spread_json(tally.host_peaks());
    json["host_budget_bytes"] = or_null(problem.graph.host_memory()->limit());
  }
  json["histogram"] = histogram_json(pipeline::shown_histogram(tally));
  const bool limited = !budgets_text(problem).empty();
  json["within_budget"] = limited ? Json(counts.within) : Json(nullptr);
  json["within_budget_share"] = limited ? Json(fraction(counts.within, counts.valid)) : Json(nullptr);
  json["undominated"] = swept.undominated ? undominated_json(*swept.undominated) : Json(nullptr);
  json["resumed_from"] = or_null(swept.resumed_from);
  json["timed_out"] = swept.timed_out;
  json["interrupted"] = swept.interrupted;
  return json;
}

void add_streams(Json& json, const fit::Decision& decision, const std::optional<runtime::Overlap>& overlap) {
  json["streams"] = overlap ? overlap->streams : 1;
  json["makespan"] = overlap ? Json(overlap->makespan) : Json(nullptr);
  json["critical_path"] = overlap ? Json(overlap->critical_path) : Json(nullptr);
  json["overlap_steps"] = decision.overlap_steps;
  json["overlap_bytes"] = decision.overlap_bytes;
}

Json run_json(const pipeline::RunOutcome& outcome) {
  const auto& [task, backend, precision, decision, answer, result, nodes_in_free_memory] = outcome;
  const core::Graph& graph = task.problem.graph;
  const fit::Decision& baseline = result.baseline;
  Json json = describe(task.problem);
  json["solver"] = decision.solver;
  if (answer != nullptr) {
    add_proof(json, task, *answer);
    json["solve_seconds"] = answer->found.seconds;
    json["solver_rounds"] = answer->rounds;
  }
  json["backend"] = backend.name();
  json["device"] = backend.device();
  json["threads"] = core::thread_count();
  std::vector<std::string> notes = notes_of(graph, result);
  if (const std::string note = backend.note(); !note.empty()) notes.insert(notes.begin(), note);
  if (!notes.empty()) json["note"] = fmt::format("{}", fmt::join(notes, "; "));
  json["kernels"] = pipeline::kernels_of(graph);
  json["synthetic_nodes"] = pipeline::synthetic_nodes(graph);
  json["precision"] = core::to_string(precision);
  json["alignment"] = decision.executed_plan().alignment;
  json["guard_bytes"] = decision.guard_bytes;
  json["predicted_by"] = predicted_by(graph);
  json["predicts_this_machine"] = pipeline::predicts(graph, backend, precision);
  json["timing"] = {{"text", timing_text(result)},
                    {"executions", result.scheduled_run.timings.size()},
                    {"warm_ups", result.warmed_up ? 1 : 0},
                    {"interleaved", result.interleaved}};
  const auto& baseline_run = result.baseline_run;
  json["nodes_in_free_memory"] = nodes_in_free_memory;
  json["baseline"] = executed_json(graph, baseline, baseline_run ? &*baseline_run : nullptr);
  json["scheduled"] = executed_json(graph, decision, &result.scheduled_run);
  json["scheduled"]["cost_increase_pct"] = increase_pct(decision.evaluation.cost, baseline.evaluation.cost);
  json["scheduled"]["time_increase_pct"] =
      baseline_run ? Json(percent_above(result.scheduled_run.report.seconds, baseline_run->report.seconds))
                   : Json(nullptr);
  add_streams(json, decision, result.scheduled_run.overlap);
  json["loss"] = or_null(result.loss);
  json["identical"] = or_null(result.identical());
  json["compared"] = compared_text(result.comparison);
  json["outputs_compared"] = result.comparison.outputs;
  json["digests_compared"] = result.comparison.digests();
  json["bytes_compared"] = result.comparison.bytes;
  json["host_check"] = result.host_check ? closeness_json(*result.host_check) : Json(nullptr);
  return json;
}

}  // namespace cairn::report
