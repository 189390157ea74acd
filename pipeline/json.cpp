#include "cairn/pipeline/internal/json.h"

#include <utility>

#include "cairn/core/cost_unit.h"
#include "cairn/core/profile.h"
#include "cairn/pipeline/device_memory.h"
#include "cairn/pipeline/info.h"
#include "cairn/pipeline/pareto.h"
#include "cairn/pipeline/words.h"

namespace cairn::pipeline {
namespace {

Json point_json(const Problem& problem, const CurvePoint& point) {
  return {{"budget_bytes", point.budget},
          {"peak_bytes", point.evaluation.peak},
          {"planned_bytes", point.memory},
          {"cost", point.evaluation.cost},
          {"cost_increase_pct", increase_pct(point.evaluation.cost, problem.baseline.cost)}};
}

Json knee_json(const Problem& problem, const Curve& curve) {
  const BesideKnee sides = beside_knee(curve);
  const auto side = [&](const CurvePoint* point) {
    return point != nullptr ? point_json(problem, *point) : Json(nullptr);
  };
  Json json = point_json(problem, curve.points[*curve.knee]);
  json["more_memory"] = side(sides.more_memory);
  json["less_memory"] = side(sides.less_memory);
  json["definition"] = kKneeDefinition;
  return json;
}

Json curve_point_json(const Problem& problem, const CurvePoint& point, bool knee, bool peak_only) {
  const auto if_known = [&](auto value) { return point.known() ? Json(value) : Json(nullptr); };
  const core::Evaluation& found = point.evaluation;
  const bool bounded = point.status != solvers::Status::infeasible;
  return {{"budget_bytes", point.budget},
          {"budget_pct", share_pct(problem, point.budget)},
          {"status", solvers::to_string(point.status)},
          {"peak_bytes", if_known(found.peak)},
          {"planned_bytes", point.known() && !peak_only ? Json(point.memory) : Json(nullptr)},
          {"cost", if_known(found.cost)},
          {"cost_increase_pct", if_known(increase_pct(found.cost, problem.baseline.cost))},
          {"lower_bound_cost", bounded ? Json(point.cost_bound.value) : Json(nullptr)},
          {"lower_bound_cost_scope", solvers::describe(point.cost_bound.scope)},
          {"gap_pct", if_known(gap_pct(found.cost, point.cost_bound))},
          {"recomputed", if_known(found.recomputed)},
          {"steps", if_known(point.schedule.length())},
          {"knee", knee}};
}

Json reached_json(const Problem& problem, const LeastBudget& by) {
  const core::Evaluation& found = by.evaluation;
  return {{"planned_bytes", by.bytes},
          {"peak_bytes", found.peak},
          {"cost", found.cost},
          {"cost_increase_pct", increase_pct(found.cost, problem.baseline.cost)},
          {"recomputed", found.recomputed},
          {"steps", by.schedule.length()}};
}

void add_verdict(Json& json, const Problem& problem, const BudgetVerdict& verdict) {
  const bool bounded = verdict.fits != false;
  json["fits"] = or_null(verdict.fits);
  json["fits_scope"] = solvers::describe(verdict.scope);
  json["fits_with_solver"] = verdict.fits_with.empty() ? Json(nullptr) : Json(verdict.fits_with);
  json["verdict"] = verdict.text;
  json["means"] = verdict.means ? Json(to_string(*verdict.means)) : Json(nullptr);
  json["within_budget"] = verdict.by ? reached_json(problem, *verdict.by) : Json(nullptr);
  json["recomputed"] = verdict.by ? Json(verdict.by->evaluation.recomputed) : Json(nullptr);
  json["cost_within_budget"] = verdict.by ? Json(verdict.by->evaluation.cost) : Json(nullptr);
  json["lower_bound_cost"] = bounded ? Json(verdict.cost_bound.value) : Json(nullptr);
  json["lower_bound_cost_scope"] = solvers::describe(verdict.cost_bound.scope);
  json["gap_pct"] = verdict.by ? Json(gap_pct(verdict.by->evaluation.cost, verdict.cost_bound)) : Json(nullptr);
}

}  // namespace

Json describe(const Problem& problem) {
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

void add_limits(Json& json, const Problem& problem, const LeastBudget& least) {
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
  json["least_feasible_bytes"] = least.bytes;
  json["least_feasible_solver"] = least.solver;
}

void add_proof(Json& json, const Task& task, const Answer& answer) {
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
  const Gap gap = gap_of(task, answer);
  json["gap_pct"] = gap.pct();
  json["gap_of"] = gap.of_what();
  if (status == solvers::Status::optimal) json["proved"] = proved_text(task, answer);
}

Json answer_json(const Task& task, std::string_view solver, const Answer& answer, const LeastBudget& least,
                 bool interrupted) {
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
  json["planned_bytes"] = answer.plan ? Json(answer.plan->bytes) : Json(nullptr);
  json["plan_fits"] =
      answer.plan ? Json(!task.problem.budget || answer.plan->bytes <= *task.problem.budget) : Json(nullptr);
  json["alignment"] = task.alignment;
  json["valid"] = shown && found.valid();
  if (answer.curve) json["knee"] = knee_json(task.problem, *answer.curve);
  json["solve_seconds"] = answer.found.seconds;
  json["best_seconds"] = solution.best_seconds;
  json["timed_out"] = solution.timed_out;
  json["interrupted"] = interrupted;
  return json;
}

Json curve_json(const Problem& problem, std::string_view solver, std::int64_t alignment, const Curve& curve,
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
  json["knee_definition"] = kKneeDefinition;
  json["met"] = Json::array();
  for (const solvers::Tradeoff& met : curve.met) json["met"].push_back({{"peak_bytes", met.peak}, {"cost", met.cost}});
  json["passes"] = curve.passes;
  json["stopped"] = solvers::to_string(curve.stop);
  json["solve_seconds"] = curve.seconds;
  json["interrupted"] = interrupted;
  return json;
}

Json to_json(const ResidentBytes& resident) {
  return {{"weights", resident.weights}, {"gradients", resident.gradients}, {"optimizer", resident.optimizer},
          {"inputs", resident.inputs},   {"constants", resident.constants}, {"unlisted", resident.unlisted}};
}

Json info_json(const Task& task, const Info& info) {
  const Problem& problem = task.problem;
  Json json = describe(problem);
  json["alignment"] = task.alignment;
  json["lower_bound_planned_bytes"] = task.rounded.plan_bound();
  json["resident"] = to_json(resident_bytes(problem.graph));
  json["cost_at_least_budget"] = info.least.evaluation.cost;
  json["least_budget"] = reached_json(problem, info.least);
  json["least_budget"]["proved"] = info.least.proved();
  json["least_budget"]["proved_scope"] = solvers::describe(info.least.bound.scope);
  if (info.verdict) add_verdict(json, problem, *info.verdict);
  add_limits(json, problem, info.least);
  return json;
}

}  // namespace cairn::pipeline
