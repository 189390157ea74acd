#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/bound.h"

/// Static memory planning. The planner chooses an offset for every buffer so that buffers alive at the same time do not
/// overlap, and so that the arena is as low as possible.
namespace cairn::solvers {

/// Requirements of one buffer on its address, in addition to its size and lifetime.
struct PlacementRules {
  std::int64_t alignment = 1;          ///< divides the offset; 1 to 2^30. See also PlanOptions::alignment
  std::optional<std::int64_t> offset;  ///< the only offset allowed
  std::optional<std::int64_t> hint;    ///< an offset to try first, e.g. from an earlier plan
  /// Ranges of steps in which other buffers may use this buffer's bytes. They lie strictly inside the buffer's
  /// lifetime, in ascending order, and do not touch each other.
  std::vector<core::StepRange> gaps;
};

/// The buffers to place, with their lifetimes. The planner reads `first`, `last` (0 <= first <= last) and `size` of
/// each buffer, and copies the other fields to the plan. It needs O(largest `last`) memory, so times should be numbered
/// without large gaps.
struct PlanProblem {
  std::vector<core::Buffer> buffers;
  /// For each buffer, the buffer whose storage it takes over in place, or -1. The lifetime of the earlier buffer ends
  /// at the step at which the lifetime of the later one starts, and the two share an offset. Empty: no buffer takes
  /// over another.
  std::vector<std::int32_t> takes_over;
  /// Rules of each buffer; empty: no rules.
  std::vector<PlacementRules> rules;
  /// Addresses that no buffer may touch. An empty range forbids no byte but acts as a wall: no buffer may lie across
  /// it. Walls make it possible to stack several memory banks.
  std::vector<core::AddressRange> forbidden;
};

struct PlanOptions {
  std::int64_t alignment = 1;    ///< bytes, up to 2^30; divides offsets and sizes. 256 is needed to execute the plan
  std::int64_t guard_bytes = 0;  ///< unused bytes behind every buffer, for the arena's sentinels
  /// Number of bytes that the buffers have to fit into. The search ends as soon as they fit. Absent: the search looks
  /// for the lowest plan.
  std::optional<std::int64_t> capacity;
  /// Limit of the search. Work is counted in comparisons of buffers; the default takes about a second. The first greedy
  /// plan is always completed, even if the limit is reached before.
  core::Limit limit{.work = 600'000'000};
  int threads = 0;  ///< number of threads; 0: one per core. Under a work limit, the plan does not depend on it
};

/// A plan with its status and lower bound. The plan is always complete. If the status is infeasible or not_found, the
/// plan is higher than the capacity.
struct PlanSolution {
  /// `optimal`: the plan is as high as lower_bound. `infeasible`: lower_bound exceeds the capacity.
  Status status = Status::not_found;
  core::Plan plan;
  /// Proved lower bound on the bytes of every plan. It is at least plan.lower_bound, which is the largest number of
  /// bytes alive at once.
  std::int64_t lower_bound = 0;
  std::int64_t work = 0;   ///< work done, in comparisons of buffers
  bool timed_out = false;  ///< whether the limit ended the search
};

/// Finds a low plan by greedy methods. First builds plans along the skyline (plan/internal/skyline.h), which is the
/// upper edge of the buffers placed so far, and keeps the lowest plan. If that plan is above the lower bound, tries
/// best-fit and first-fit over several orders of the buffers: by size, lifetime, area, conflicts and start. Finally
/// builds plans repeatedly. Each time, the buffers that ended too high are placed earlier than before.
///
/// The first plan takes O(b log b). If buffers have fixed or hinted offsets, this is multiplied by the number of
/// address ranges in use. The result is deterministic under a limit of work. If the capacity is below the lower bound,
/// the search ends after the first plan. Throws InputError in these cases:
/// - The problem is malformed.
/// - An alignment, the guard or the capacity is out of range.
/// - The sizes add up to more than 2^62.
/// - Fixed offsets overlap or are forbidden.
PlanSolution greedy_plan(const PlanProblem& problem, const PlanOptions& options = {});

/// Finds the lowest plan, or a plan that fits into the capacity. Starts with greedy_plan(). If that plan reaches
/// neither the lower bound nor the capacity, beam searches over time (plan/internal/time_beam.h) and an exact search
/// (plan/internal/exact.h) take turns for the rest of the limit. Throws as greedy_plan() does.
PlanSolution find_plan(const PlanProblem& problem, const PlanOptions& options = {});

/// A set of buffers that together cannot fit into a capacity.
struct PlanConflict {
  /// Indices of the buffers, ascending. Empty if it is not proved that the problem does not fit.
  std::vector<std::int32_t> buffers;
  /// Whether leaving out any one of these buffers makes the others fit. False if the limit ended the proof.
  bool irreducible = false;
};

/// Finds a small set of buffers that explains why a problem does not fit into options.capacity. Leaves out buffers one
/// after another, as long as the rest is proved not to fit. Makes at most O(b) exact searches. Throws InputError if
/// there is no capacity, and as greedy_plan() does.
PlanConflict irreducible_conflict(const PlanProblem& problem, const PlanOptions& options);

/// Makes the buffers of a schedule. Every output that has bytes gets a buffer for the output's lifetime. Every step
/// with scratch gets a buffer for the scratch. An occurrence of an in-place node takes over the storage of its input if
/// that input is not used again. Throws InputError if the schedule is invalid. O((T + sum of in-degrees) log T) for T
/// steps.
PlanProblem plan_problem(const core::Graph& graph, const core::Schedule& schedule);

/// Makes the buffers of the given specs. Buffer i is specs[i], with its times renumbered without gaps. Throws
/// InputError if a spec has lower >= upper.
PlanProblem plan_problem(const std::vector<core::BufferSpec>& specs);

/// A schedule with its plan.
struct PlannedOrder {
  core::Schedule schedule;
  PlanSolution plan;
};

/// Finds the lowest plan of a schedule. The plan can exceed options.capacity although the schedule's peak does not. In
/// this case, other orders of the same steps are tried. In each of them every step reads the same values as before, and
/// memory stays within the capacity, so cost and recomputations stay the same. Returns the order with the lowest plan
/// found. If there is no capacity, the schedule's peak with sizes rounded up to the alignment is used. Schedules of
/// more than 20,000 steps keep their order. Throws as plan_problem() does.
PlannedOrder plan_some_order(const core::Graph& graph, const core::Schedule& schedule, const PlanOptions& options);

/// Runs find_plan() on the buffers of a schedule (plan_problem()).
core::Plan plan_memory(const core::Graph& graph, const core::Schedule& schedule, const PlanOptions& options = {});
/// Runs find_plan() on the buffers of the given specs. `Plan::buffers[i]` is specs[i], with `last` = upper - 1.
core::Plan plan_buffers(const std::vector<core::BufferSpec>& specs, const PlanOptions& options = {});

}  // namespace cairn::solvers
