#include "cairn/pipeline/internal/json.h"

#include <utility>

#include "cairn/core/cost_unit.h"
#include "cairn/core/profile.h"
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

}  // namespace cairn::pipeline
