#include "cairn/solvers/fit/internal/placed_plan.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cairn/core/error.h"
#include "cairn/solvers/fit/solve.h"

namespace cairn::fit {

solvers::PlannedOrder plan_within(const solvers::Scope& scope, const core::Graph& graph, const core::Schedule& schedule,
                                  const solvers::PlanOptions& options) {
  if (scope.order == solvers::OrderRule::free) return solvers::plan_some_order(graph, schedule, options);
  return {schedule, solvers::find_plan(graph, schedule, options)};
}

core::Plan plan_of(const core::Graph& graph, const solvers::PlacedSchedule& placed,
                   const solvers::PlanOptions& options) {
  solvers::PlanProblem problem = solvers::plan_problem(graph, placed.schedule);
  if (placed.offsets.size() != problem.buffers.size())
    throw core::InputError(
        fmt::format("{} offsets do not belong to a plan of {} buffers", placed.offsets.size(), problem.buffers.size()));
  problem.rules.resize(problem.buffers.size());
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) problem.rules[i].offset = placed.offsets[i];
  core::Plan plan = solvers::greedy_plan(problem, options).plan;
  solvers::plan_host(graph, placed.schedule, options, plan);
  require_right(core::check_plan(graph, placed.schedule, plan));
  return plan;
}

std::optional<core::Plan> plan_of_start(const core::Graph& graph, const solvers::SolveOptions& options,
                                        const solvers::PlanOptions& planning) {
  if (options.start == nullptr || options.start_offsets == nullptr) return std::nullopt;
  return plan_at(graph, *options.start, *options.start_offsets, planning.alignment, planning.overlap_steps);
}

}  // namespace cairn::fit
