#include "cairn/solvers/fit/solve.h"

#include <fmt/format.h>

#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/fit/internal/placed_plan.h"

namespace cairn::fit {

void require_right(const std::string& defect) {
  if (!defect.empty()) throw core::DefectError(fmt::format("the plan is wrong: {}; please report this", defect));
}

core::Evaluation evaluate_again(std::string_view solver, const core::Graph& graph, const solvers::Solution& solution) {
  const core::Evaluation evaluation = core::evaluate(graph, solution.schedule);
  if (!evaluation.valid())
    throw core::DefectError(fmt::format("solver '{}' returned an invalid schedule: {}; please report this", solver,
                                        core::describe(graph, evaluation.defect)));
  if (evaluation.peak != solution.peak || evaluation.cost != solution.cost)
    throw core::DefectError(
        fmt::format("solver '{}' reports peak {} and cost {}, but its schedule has {} and {}; please report this",
                    solver, solution.peak, solution.cost, evaluation.peak, evaluation.cost));
  return evaluation;
}

bool meets(const solvers::Solution& solution, std::optional<std::int64_t> budget) {
  const bool found = solution.status == solvers::Status::optimal || solution.status == solvers::Status::feasible;
  return found && (!budget || solution.peak <= *budget);
}

Solved solve(const core::Graph& graph, const solvers::SolverInfo& solver, const solvers::SolveOptions& options) {
  Solved solved;
  const core::Stopwatch watch(options.limit);
  solved.solution = solver.solve(graph, options);
  solved.seconds = watch.seconds();
  if (solved.within(std::nullopt) || !solved.solution.schedule.steps.empty())
    solved.evaluation = evaluate_again(solver.name, graph, solved.solution);
  return solved;
}

std::optional<core::Plan> plan_at(const core::Graph& graph, const core::Schedule& schedule,
                                  const std::vector<std::int64_t>& offsets, std::int64_t alignment,
                                  std::int64_t overlap_steps) {
  try {
    return plan_of(graph, {schedule, offsets, 0}, {.alignment = alignment, .overlap_steps = overlap_steps});
  } catch (const core::InputError&) {
    return std::nullopt;
  }
}

solvers::PlanSolution checked_plan(const core::Graph& graph, const core::Schedule& schedule,
                                   const solvers::PlanOptions& options) {
  solvers::PlanSolution found = solvers::find_plan(graph, schedule, options);
  require_right(core::check_plan(graph, schedule, found.plan));
  return found;
}

solvers::PlanSolution checked_plan(const std::vector<core::BufferSpec>& specs,
                                   const std::vector<core::AddressRange>& forbidden,
                                   const solvers::PlanOptions& options) {
  const std::string contradiction = core::check_fixed_offsets(specs, forbidden, options.alignment, options.capacity);
  if (!contradiction.empty()) throw core::InputError(contradiction);
  solvers::PlanProblem problem = solvers::plan_problem(specs);
  problem.forbidden = forbidden;
  solvers::PlanSolution found = solvers::find_plan(problem, options);
  for (std::size_t i = 0; i < specs.size(); ++i) {  // restores the times, which the planner renumbers
    found.plan.buffers[i].first = specs[i].lower;
    found.plan.buffers[i].last = specs[i].upper - 1;
  }
  require_right(core::check_specs(specs, forbidden, found.plan, options.guard_bytes));
  return found;
}

solvers::Status FoundPlan::status() const {
  if (capacity && solution.lower_bound > *capacity) return solvers::Status::infeasible;
  if (!fits()) return solvers::Status::not_found;
  return solution.plan.bytes == solution.lower_bound ? solvers::Status::optimal : solvers::Status::feasible;
}

bool has_ops(const core::Graph& graph) {
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.op(v) != nullptr) return true;
  }
  return false;
}

std::int64_t default_alignment(const core::Graph& graph) { return has_ops(graph) ? 256 : 1; }

}  // namespace cairn::fit
