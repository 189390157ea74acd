#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/solvers/registry.h"

namespace cairn::cli {

/// Whether the solver succeeded, within the budget where there is one. The empty graph's schedule has no steps, so its
/// status decides, not the steps.
inline bool meets(const solvers::Solution& solution, std::optional<std::int64_t> budget) {
  const bool found = solution.status == solvers::Status::optimal || solution.status == solvers::Status::feasible;
  return found && (!budget || solution.peak <= *budget);
}

/// A schedule whose plan, not only its peak, is to fit into a budget.
struct Fit {
  solvers::Solution solution;  ///< peak and cost are those of the graph with sizes rounded up to the alignment
  core::Plan plan;             ///< of the solution's schedule on the graph itself: the lowest that was met
  std::int64_t budget = 0;
  int rounds = 0;  ///< how often the solver was called

  bool planned() const { return planned_; }
  bool fits() const { return planned_ && plan.bytes <= budget; }

  /// Takes over `solution` and its plan where that is lower than what there is.
  void improve(solvers::Solution candidate, core::Plan candidate_plan) {
    if (planned_ && candidate_plan.bytes >= plan.bytes) return;
    solution = std::move(candidate);
    plan = std::move(candidate_plan);
    planned_ = true;
  }

 private:
  bool planned_ = false;
};

/// Solves on sizes rounded up to `plan_options.alignment` (`aligned` is core::align_sizes of `graph`) and plans. Where
/// the plan needs more than `budget` bytes (fragmentation), the solver's budget is lowered by the excess, by 0.5% at
/// least, and it is called again, up to `max_rounds` times; each round takes at most half of the wall time that is
/// left, and the whole work limit. `options.budget` is not read. In the header alone, so that tests need not link the
/// command.
inline Fit fit_to_budget(const core::Graph& graph, const core::Graph& aligned, std::int64_t budget,
                         const solvers::SolverInfo& solver, solvers::SolveOptions options,
                         const solvers::PlanOptions& plan_options, int max_rounds = 8) {
  const core::Stopwatch watch(options.limit);
  const double seconds = options.limit.seconds;
  const std::int64_t least_cut = std::max(budget / 200, plan_options.alignment);
  Fit fit;
  fit.budget = budget;
  std::int64_t solver_budget = budget;
  while (fit.rounds < max_rounds && solver_budget > 0 && !watch.interrupted()) {
    ++fit.rounds;
    options.budget = solver_budget;
    options.limit.seconds = (seconds - watch.seconds()) / 2;
    solvers::Solution solution = solver.solve(aligned, options);
    if (!meets(solution, solver_budget)) {
      if (!fit.planned()) fit.solution = std::move(solution);
      break;
    }
    core::Plan plan = solvers::plan_memory(graph, solution.schedule, plan_options);
    const std::int64_t excess = plan.bytes - budget;
    fit.improve(std::move(solution), std::move(plan));
    if (fit.fits()) break;
    solver_budget -= std::max(excess, least_cut);
  }
  return fit;
}

}  // namespace cairn::cli
