#include "cairn/solvers/fit/internal/placed_plan.h"

#include <cstddef>

#include "cairn/solvers/fit/solve.h"

namespace cairn::fit {

solvers::PlacedSchedule placed_as(const core::Schedule& schedule, const core::Plan& plan) {
  solvers::PlacedSchedule placed{schedule, {}, 0};
  for (const core::Buffer& buffer : plan.buffers) placed.offsets.push_back(buffer.offset);
  return placed;
}

core::Plan plan_of(const core::Graph& graph, const solvers::PlacedSchedule& placed,
                   const solvers::PlanOptions& options) {
  solvers::PlanProblem problem = solvers::plan_problem(graph, placed.schedule);
  problem.rules.resize(problem.buffers.size());
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) problem.rules[i].offset = placed.offsets[i];
  core::Plan plan = solvers::greedy_plan(problem, options).plan;
  require_right(core::check_plan(graph, placed.schedule, plan));
  return plan;
}

}  // namespace cairn::fit
