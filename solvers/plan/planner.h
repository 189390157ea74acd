#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/bound.h"

/// Static memory planning: choosing an offset for every buffer so that no two live at once overlap and the arena is
/// low.
namespace cairn::solvers {

/// Requirements of one buffer on its place, beside its size and lifetime.
struct PlacementRules {
  std::int64_t alignment = 1;          ///< number that divides the offset (1 to 2^30), like PlanOptions::alignment
  std::optional<std::int64_t> offset;  ///< the only offset allowed
  std::optional<std::int64_t> hint;    ///< an offset to try first, e.g. from an earlier plan
  /// Steps during which other buffers may use the buffer's bytes; strictly inside its lifetime, ascending and apart.
  std::vector<core::StepRange> gaps;
};

/// Buffers with their lifetimes. `first`, `last` (0 <= first <= last) and `size` of each are read; the rest is copied
/// to the plan. Memory O(largest `last`): number the times densely.
struct PlanProblem {
  std::vector<core::Buffer> buffers;
  /// For each buffer, the buffer whose storage it takes over in place, or -1. That buffer ends at the step at which
  /// this one starts; the two share an offset. Empty: no buffer takes over another.
  std::vector<std::int32_t> takes_over;
  /// Rules of each buffer; empty: no rules.
  std::vector<PlacementRules> rules;
  /// Addresses that no buffer may touch. An empty range is a wall that no buffer may lie across: memory banks can be
  /// stacked with walls between them.
  std::vector<core::AddressRange> forbidden;
};

struct PlanOptions {
  std::int64_t alignment = 1;    ///< bytes, up to 2^30; divides offsets and sizes. 256 is needed to execute the plan
  std::int64_t guard_bytes = 0;  ///< unused bytes behind every buffer, for the arena's sentinels
  /// Bytes that the buffers have to fit into: the search ends as soon as they do. Absent: the lowest plan is looked
  /// for.
  std::optional<std::int64_t> capacity;
  /// Limit of the search. Work is counted in comparisons of buffers; the default is about a second's worth. The first
  /// greedy plan is always completed, whatever the limit.
  core::Limit limit{.work = 600'000'000};
  int threads = 0;  ///< threads for the searches; 0: one a core. Answers within a work limit do not depend on it
};

/// A plan with its status and bound. The plan is always complete; if status is infeasible or not_found, it is higher
/// than the capacity.
struct PlanSolution {
  /// Optimal: the plan is as high as lower_bound; infeasible: lower_bound exceeds the capacity.
  Status status = Status::not_found;
  core::Plan plan;
  /// Bytes that every plan needs, as proved; at least plan.lower_bound, which is max-live.
  std::int64_t lower_bound = 0;
  std::int64_t work = 0;   ///< work done, in comparisons of buffers
  bool timed_out = false;  ///< whether the limit ended the search
};

/// Finds the greedy plan. Builds plans along the skyline (plan/internal/skyline.h) and keeps the lowest. If that plan
/// is above the lower bound, tries best-fit and first-fit over several orders (by size, lifetime, area, conflicts,
/// start), then builds plans again and again with the buffers that ended too high placed earlier. O(b log b) for the
/// first plan; if some are fixed or hinted, times the ranges of addresses in use. Deterministic under a limit of work.
/// With a capacity below the bound, ends after the first plan. Throws InputError on a malformed problem, an alignment,
/// guard or capacity out of range, sizes that add up to over 2^62, or fixed offsets that overlap or are forbidden.
PlanSolution greedy_plan(const PlanProblem& problem, const PlanOptions& options = {});

/// Finds the least plan, or one that fits into the capacity. Starts with greedy_plan; if that reaches neither the bound
/// nor the capacity, runs beams over time (plan/internal/time_beam.h) and an exact search (plan/internal/exact.h) in
/// turn for the rest of the limit. Throws as greedy_plan.
PlanSolution find_plan(const PlanProblem& problem, const PlanOptions& options = {});

/// A set of buffers that cannot fit into a capacity together.
struct PlanConflict {
  /// Indices of the buffers, ascending; empty: not proved that the problem does not fit.
  std::vector<std::int32_t> buffers;
  /// Whether without any one of them the others fit; false if the limit ended the proof.
  bool irreducible = false;
};

/// Finds a cause why a problem does not fit into options.capacity: leaves out buffers as long as the rest is proved not
/// to fit. O(b) exact searches at most. Throws InputError without a capacity, and as greedy_plan.
PlanConflict irreducible_conflict(const PlanProblem& problem, const PlanOptions& options);

/// Makes the buffers of a schedule: one for every output that has bytes, for its lifetime, and one for the scratch of
/// each step. Occurrences of in-place nodes take over their input's storage if that input is not used again. Throws
/// InputError on an invalid schedule. O((T + sum of in-degrees) log T).
PlanProblem plan_problem(const core::Graph& graph, const core::Schedule& schedule);

/// Makes the buffers of given specs: buffer i is specs[i], with times numbered densely. Throws InputError on lower >=
/// upper.
PlanProblem plan_problem(const std::vector<core::BufferSpec>& specs);

/// A schedule with its plan.
struct PlannedOrder {
  core::Schedule schedule;
  PlanSolution plan;
};

/// Finds the least plan of a schedule. If that exceeds options.capacity (by default the schedule's peak with sizes
/// rounded up to the alignment) although the peak does not, other orders of the same steps are tried. In these orders
/// every step reads the same values as now and memory stays within the capacity; cost and recomputations are the same.
/// Returns the order with the lowest plan found. Schedules of over 20,000 steps are planned as they are. Throws as
/// plan_problem.
PlannedOrder plan_some_order(const core::Graph& graph, const core::Schedule& schedule, const PlanOptions& options);

/// Runs find_plan on the buffers of a schedule (plan_problem).
core::Plan plan_memory(const core::Graph& graph, const core::Schedule& schedule, const PlanOptions& options = {});
/// Runs find_plan on the buffers of given specs; `Plan::buffers[i]` is specs[i], with `last` = upper - 1.
core::Plan plan_buffers(const std::vector<core::BufferSpec>& specs, const PlanOptions& options = {});

}  // namespace cairn::solvers
