#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/bound.h"

/// Static memory planning: where every buffer lives, so that no two that are live at once overlap and the arena is low.
namespace cairn::solvers {

/// What one buffer asks of its place, beside its size and lifetime.
struct PlacementRules {
  std::int64_t alignment = 1;          ///< its offset is a multiple of this (1 to 2^30) and of PlanOptions::alignment
  std::optional<std::int64_t> offset;  ///< it lies there and nowhere else
  std::optional<std::int64_t> hint;    ///< an offset to try first, as of an earlier plan
  /// Steps strictly inside its lifetime, ascending and apart, during which its bytes are free for others.
  std::vector<core::StepRange> gaps;
};

/// Buffers with their lifetimes. Of each, `first`, `last` (0 <= first <= last) and `size` are read; the rest is handed
/// through to the plan. Memory O(largest `last`): number the times densely.
struct PlanProblem {
  std::vector<core::Buffer> buffers;
  /// For each buffer the one whose storage it takes over in place, which ends at the step at which this one starts, or
  /// -1; the two share an offset. Empty: none takes over any.
  std::vector<std::int32_t> takes_over;
  /// Of each buffer; empty: none has any.
  std::vector<PlacementRules> rules;
  /// Bytes that no buffer may touch. An empty range is a wall that none may lie across: banks of memory stand one
  /// behind the other with walls between them.
  std::vector<core::AddressRange> forbidden;
};

struct PlanOptions {
  std::int64_t alignment = 1;    ///< bytes, up to 2^30; offsets and sizes are multiples of it. 256 to execute the plan
  std::int64_t guard_bytes = 0;  ///< unused bytes behind every buffer, for the arena's sentinels
  /// Bytes that the buffers are to fit into: the search ends as soon as they do. Absent: as low as possible.
  std::optional<std::int64_t> capacity;
  /// Work is counted in comparisons of buffers; the default is about a second's worth. The first greedy plan is always
  /// made whole, whatever the limit.
  core::Limit limit{.work = 600'000'000};
  int threads = 0;  ///< of the searches; 0: as many as the machine has. No answer within a work limit depends on it
};

/// A plan and what is known of it. The plan is always whole, if higher than the capacity where status is infeasible or
/// not_found.
struct PlanSolution {
  Status status = Status::not_found;  ///< optimal: of the height of lower_bound; infeasible: that is over capacity
  core::Plan plan;
  std::int64_t lower_bound = 0;  ///< bytes: proved of every plan; at least plan.lower_bound, which is max-live
  std::int64_t work = 0;         ///< comparisons of buffers
  bool timed_out = false;        ///< the limit ended the search
};

/// Plans built up along the skyline (internal/skyline.h), the lowest kept; where they miss the bound, best-fit and
/// first-fit over several orders (by size, lifetime, area, conflicts, start), and a search that builds up again with
/// those buffers earlier that were too high. O(b log b) for the first plan; where some are fixed or hinted, times the
/// ranges of addresses in use. Deterministic under a limit of work. A capacity below the bound ends it after the first
/// plan. Throws InputError on a malformed problem, an alignment, guard or capacity out of range, sizes that add up to
/// over 2^62, or fixed offsets that overlap or are forbidden.
PlanSolution greedy_plan(const PlanProblem& problem, const PlanOptions& options = {});

/// The least plan, or one that fits: greedy_plan first and, where that misses the bound and the capacity, beams over
/// time (internal/time_beam.h) and an exact search (internal/exact.h) in turn for what is left of the limit. Throws as
/// greedy_plan.
PlanSolution find_plan(const PlanProblem& problem, const PlanOptions& options = {});

/// Buffers that cannot fit into a capacity together.
struct PlanConflict {
  std::vector<std::int32_t> buffers;  ///< indices, ascending; empty: it is not proved that the problem does not fit
  bool irreducible = false;           ///< without any one of them the others fit; false where the limit ended the proof
};

/// Why a problem does not fit into options.capacity: leaves out buffers as long as the rest is proved not to fit.
/// O(b) exact searches at most. Throws InputError without a capacity, and as greedy_plan.
PlanConflict irreducible_conflict(const PlanProblem& problem, const PlanOptions& options);

/// The buffers of a schedule: one for every output that has bytes, for its lifetime, and one for its scratch.
/// Occurrences of in-place nodes take over their input's storage where that input is not used again. Throws InputError
/// on an invalid schedule. O((T + sum of in-degrees) log T).
PlanProblem plan_problem(const core::Graph& graph, const core::Schedule& schedule);

/// The same of a free-standing problem: buffer i is specs[i], with times numbered densely. Throws InputError on lower
/// >= upper.
PlanProblem plan_problem(const std::vector<core::BufferSpec>& specs);

/// A schedule with its plan.
struct PlannedOrder {
  core::Schedule schedule;
  PlanSolution plan;
};

/// The least plan of a schedule. Where that is above options.capacity (by default the schedule's peak with sizes
/// rounded up to the alignment) although the peak is not, other orders of the same steps are tried in which every step
/// reads what it reads now, and memory stays within the capacity: cost and recomputations are the same. Returns the
/// order with the lowest plan that was found. Schedules of over 20,000 steps are planned as they are. Throws as
/// plan_problem.
PlannedOrder plan_some_order(const core::Graph& graph, const core::Schedule& schedule, const PlanOptions& options);

/// find_plan of plan_problem.
core::Plan plan_memory(const core::Graph& graph, const core::Schedule& schedule, const PlanOptions& options = {});
/// The same; `Plan::buffers[i]` is specs[i], with `last` = upper - 1.
core::Plan plan_buffers(const std::vector<core::BufferSpec>& specs, const PlanOptions& options = {});

}  // namespace cairn::solvers
