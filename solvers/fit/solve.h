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

/// Whether the solver succeeded, within the budget if there is one. The empty graph's schedule has no steps, so the
/// status decides, not the steps.
bool meets(const solvers::Solution& solution, std::optional<std::int64_t> budget);

/// Evaluates the schedule that a solver returned. Throws DefectError if it is invalid or the solver reported wrong
/// measures.
core::Evaluation evaluate_again(std::string_view solver, const core::Graph& graph, const solvers::Solution& solution);

/// A solution whose schedule was evaluated again, and planned where somebody asks for a plan.
struct Solved {
  solvers::Solution solution;
  core::Evaluation evaluation;     ///< measures of the schedule, if there is one, on the graph that was searched
  std::optional<core::Plan> plan;  ///< plan of the schedule without guards; empty: not planned
  double seconds = 0;

  bool within(std::optional<std::int64_t> budget) const { return meets(solution, budget); }
};

/// Runs the solver and checks its answer. Throws DefectError if the schedule is invalid or its measures are wrong,
/// InputError if the solver does not take the graph.
Solved solve(const core::Graph& graph, const solvers::SolverInfo& solver, const solvers::SolveOptions& options = {});

/// Finds a plan of a schedule's buffers by solvers::find_plan, and checks it. Throws DefectError if the plan is wrong.
solvers::PlanSolution checked_plan(const core::Graph& graph, const core::Schedule& schedule,
                                   const solvers::PlanOptions& options);
/// Finds and checks a plan of buffers without a graph: buffer i of the plan is specs[i], with `last` = upper - 1.
/// Throws InputError, which names the buffers, if fixed offsets contradict each other, the forbidden addresses or the
/// capacity.
solvers::PlanSolution checked_plan(const std::vector<core::BufferSpec>& specs,
                                   const std::vector<core::AddressRange>& forbidden,
                                   const solvers::PlanOptions& options);

/// A plan found by a search, to be reported.
struct FoundPlan {
  solvers::PlanSolution solution;
  double seconds = 0;  ///< time that the search took
  std::optional<std::int64_t> capacity;

  bool fits() const { return !capacity || solution.plan.bytes <= *capacity; }
  /// Compares the plan with the capacity, whether or not the planner was told the capacity.
  solvers::Status status() const;
};

/// Throws DefectError with the message `defect` of a plan check; does nothing if the message is empty.
void require_right(const std::string& defect);

/// Whether some node has an op, i.e. whether kernels execute the graph.
bool has_ops(const core::Graph& graph);
/// Default alignment of sizes and offsets in a plan: 256 bytes if some node has an op, because kernels read the
/// buffers; else 1, as in graphs of sizes and costs alone.
std::int64_t default_alignment(const core::Graph& graph);

}  // namespace cairn::fit
