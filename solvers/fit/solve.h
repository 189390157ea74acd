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

/// Returns whether the solver found a schedule and, if there is a budget, the schedule's peak is within it. Reads the
/// status instead of the number of steps, because the schedule of an empty graph has no steps.
bool meets(const solvers::Solution& solution, std::optional<std::int64_t> budget);

/// Evaluates the schedule that a solver returned. Throws DefectError if the schedule is invalid, or if its peak or cost
/// differs from what the solver reported.
core::Evaluation evaluate_again(std::string_view solver, const core::Graph& graph, const solvers::Solution& solution);

/// Holds the solution of a solver, with the measures and the plan of its schedule.
struct Solved {
  solvers::Solution solution;
  /// Measures of the schedule on the graph that the solver got, if there is a schedule.
  core::Evaluation evaluation;
  std::optional<core::Plan> plan;  ///< plan of the schedule without guards; empty if the schedule was not planned
  double seconds = 0;

  bool within(std::optional<std::int64_t> budget) const { return meets(solution, budget); }
};

/// Runs the solver and checks its answer by evaluate_again(). Throws InputError if the solver does not accept the
/// graph.
Solved solve(const core::Graph& graph, const solvers::SolverInfo& solver, const solvers::SolveOptions& options = {});

/// Returns the plan of a schedule whose buffers lie at `offsets` (core::offsets_of()). Each buffer also stays reserved
/// for `overlap_steps` steps after its last step (solvers::PlanOptions). Returns nothing if the offsets are not valid
/// addresses for these buffers. Takes at most O(b^2 log b) time for b buffers.
std::optional<core::Plan> plan_at(const core::Graph& graph, const core::Schedule& schedule,
                                  const std::vector<std::int64_t>& offsets, std::int64_t alignment,
                                  std::int64_t overlap_steps = 0);

/// Finds a plan of a schedule's buffers by solvers::find_plan(), and checks the plan. Throws DefectError if the plan is
/// wrong.
solvers::PlanSolution checked_plan(const core::Graph& graph, const core::Schedule& schedule,
                                   const solvers::PlanOptions& options);
/// Finds and checks a plan of buffers without a graph. Buffer i of the plan is specs[i], with `last` = upper - 1.
/// Throws InputError if a fixed offset contradicts another fixed offset, the forbidden addresses or the capacity. The
/// message names the buffers.
solvers::PlanSolution checked_plan(const std::vector<core::BufferSpec>& specs,
                                   const std::vector<core::AddressRange>& forbidden,
                                   const solvers::PlanOptions& options);

/// Holds a plan that a search found, and the capacity in bytes into which the plan was to fit.
struct FoundPlan {
  solvers::PlanSolution solution;
  double seconds = 0;
  std::optional<std::int64_t> capacity;

  bool fits() const { return !capacity || solution.plan.bytes <= *capacity; }
  /// Returns the status of the plan with respect to `capacity`, even if the planner was called without this capacity.
  solvers::Status status() const;
};

/// Throws DefectError if `defect`, which a check of a plan returned, is not empty. The message contains `defect`.
void require_right(const std::string& defect);

/// Returns whether some node has an op, so that real kernels can execute it.
bool has_ops(const core::Graph& graph);
/// Returns the default alignment of sizes and offsets in a plan. The result is 256 bytes if some node has an op,
/// because kernels need aligned buffers. The result is 1 for graphs that consist of sizes and costs alone.
std::int64_t default_alignment(const core::Graph& graph);

}  // namespace cairn::fit
