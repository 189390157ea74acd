#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/solvers/registry.h"

namespace cairn::fit {

/// Whether the solver succeeded, within the budget where there is one. The empty graph's schedule has no steps, so its
/// status decides, not the steps.
bool meets(const solvers::Solution& solution, std::optional<std::int64_t> budget);

/// Evaluates the schedule that a solver returned. Throws DefectError where it is invalid, or its measures are not what
/// the solver says.
core::Evaluation evaluate_again(std::string_view solver, const core::Graph& graph, const solvers::Solution& solution);

/// A solution whose schedule was evaluated again.
struct Solved {
  solvers::Solution solution;
  core::Evaluation evaluation;  ///< of the schedule, where there is one
  double seconds = 0;

  bool within(std::optional<std::int64_t> budget) const { return meets(solution, budget); }
};

/// Solves and checks. Throws DefectError where the schedule is invalid or its measures are wrong, InputError where the
/// solver does not take the graph.
Solved solve(const core::Graph& graph, const solvers::SolverInfo& solver, const solvers::SolveOptions& options = {});

/// solvers::find_plan of a schedule's buffers, checked. Throws DefectError where the plan is wrong.
solvers::PlanSolution checked_plan(const core::Graph& graph, const core::Schedule& schedule,
                                   const solvers::PlanOptions& options);
/// The same of a free-standing problem: buffer i of the plan is specs[i], with `last` = upper - 1. Throws InputError,
/// which names the buffers, where fixed offsets contradict each other, the forbidden addresses or the capacity.
solvers::PlanSolution checked_plan(const std::vector<core::BufferSpec>& specs,
                                   const std::vector<core::AddressRange>& forbidden,
                                   const solvers::PlanOptions& options);

/// A plan that was searched, to be reported.
struct FoundPlan {
  solvers::PlanSolution solution;
  double seconds = 0;  ///< of the search
  std::optional<std::int64_t> capacity;

  bool fits() const { return !capacity || solution.plan.bytes <= *capacity; }
  /// As to the capacity, whether or not the planner was told it.
  solvers::Status status() const;
};

/// Throws DefectError with what a check of a plan says; empty: it is right.
void require_right(const std::string& defect);

/// Whether some node has an op, so that kernels execute it.
bool has_ops(const core::Graph& graph);
/// What sizes and offsets of a plan are multiples of where nobody says: 256 bytes where some node has an op, as kernels
/// read what lies there; 1 where none has, as in graphs of sizes and costs alone.
std::int64_t default_alignment(const core::Graph& graph);

}  // namespace cairn::fit
