#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/bound.h"

/// Plans memory statically. The planner gives every buffer an offset in the arena, one block of memory. Buffers that
/// are live at the same time must not overlap. The height of a plan is the size of the arena, which should be as small
/// as possible.
namespace cairn::solvers {

/// Restricts the offset of one buffer, beyond what its size and lifetime require.
struct PlacementRules {
  /// The offset is a multiple of this number of bytes, 1 to 2^30. See also PlanOptions::alignment.
  std::int64_t alignment = 1;
  std::optional<std::int64_t> offset;  ///< the only offset allowed
  std::optional<std::int64_t> hint;    ///< an offset to try first, e.g. from an earlier plan
  /// Ranges of steps during which other buffers may use this buffer's bytes. The ranges lie strictly inside the
  /// buffer's lifetime, in ascending order, with at least one step between two of them.
  std::vector<core::StepRange> gaps;
};

/// Holds the buffers to place, with their lifetimes. The planner reads `first`, `last` (0 <= first <= last) and `size`
/// of each buffer, and copies the other fields to the plan. The planner needs memory in proportion to the largest
/// `last`, so times should be numbered without large gaps.
struct PlanProblem {
  std::vector<core::Buffer> buffers;
  /// For each buffer, the number of the buffer whose storage it takes over in place, or -1. The two buffers get the
  /// same offset. The lifetime of the earlier buffer must end at the step at which the lifetime of the later buffer
  /// starts. Empty: no buffer takes over another.
  std::vector<std::int32_t> takes_over;
  /// Rules of each buffer; empty: no rules.
  std::vector<PlacementRules> rules;
  /// Addresses that no buffer may use. An empty range [a, a) is a wall: no buffer may use bytes on both sides of a.
  /// With walls, the arena can consist of several memory banks.
  std::vector<core::AddressRange> forbidden;
};

struct PlanOptions {
  /// Alignment in bytes, 1 to 2^30. All offsets and rounded sizes are multiples of it. Kernels need 256.
  std::int64_t alignment = 1;
  std::int64_t guard_bytes = 0;  ///< unused bytes behind every buffer, to detect writes beyond the buffer
  /// Number of steps for which every buffer stays reserved after its last step. A step then shares no addresses with
  /// the buffers that ended in the overlap_steps steps before it, so that the step need not wait for the readers of
  /// these buffers if steps overlap in time (runtime/overlap.h). The price is a higher plan. The plan lists the
  /// lifetimes without these steps. An output in place still takes over its input, and keeps all bytes of a larger
  /// input.
  std::int64_t overlap_steps = 0;
  /// Number of bytes into which the buffers must fit. The search ends as soon as they fit. Absent: the search looks for
  /// the lowest plan.
  std::optional<std::int64_t> capacity;
  /// Limit of the search. Work is counted in comparisons of buffers; the default takes about a second. The first greedy
  /// plan is completed even if the limit is reached before.
  core::Limit limit{.work = 600'000'000};
  int threads = 0;  ///< number of threads; 0: one per core. Under a work limit, the plan does not depend on this number
};

/// Holds a plan with its status and lower bound. The plan contains all buffers, whatever the status. If the status is
/// infeasible or not_found, the plan is higher than the capacity.
struct PlanSolution {
  /// `optimal`: the plan is as high as lower_bound. `infeasible`: lower_bound exceeds the capacity.
  Status status = Status::not_found;
  core::Plan plan;
  /// Proved lower bound on the height of every plan, in bytes. The bound is at least plan.lower_bound, the largest
  /// number of bytes that are live at once.
  std::int64_t lower_bound = 0;
  std::int64_t work = 0;   ///< work done, in comparisons of buffers
  bool timed_out = false;  ///< whether the limit ended the search
};

/// Finds a low plan by greedy methods. Ends as soon as a plan is as low as the lower bound or fits into the capacity.
/// The methods are, in this order:
/// - Plans along the skyline (plan/internal/packing/skyline.h), which is the upper edge of the buffers placed so far.
/// - Best-fit and first-fit over several orders of the buffers: by size, length of the lifetime, area (size times
/// length), number of buffers that are live during the lifetime, and first step.
/// - Further plans along the skyline. Buffers that lie too high in one plan get a higher priority in the next plan.
///
/// The first plan takes O(b log b) time for b buffers. If buffers have fixed or hinted offsets, it takes O(b r log b),
/// where r is the number of address ranges in use. Deterministic under a limit of work. If the capacity is below the
/// lower bound, the search ends after the first plan. Throws InputError in these cases:
/// - The problem is malformed.
/// - An alignment, the guard or the capacity is out of range.
/// - The sizes add up to more than 2^62.
/// - Fixed offsets overlap or are forbidden.
PlanSolution greedy_plan(const PlanProblem& problem, const PlanOptions& options = {});

/// Searches for the lowest plan or, if there is a capacity, for a plan that fits into it. Starts with greedy_plan(). If
/// that plan is too high, beam searches over time (plan/internal/search/time_beam.h), guided local searches
/// (plan/internal/search/guided_search.h) and an exact search (plan/internal/exact/exact.h) take turns for the rest of
/// the limit. Throws as greedy_plan() does.
PlanSolution find_plan(const PlanProblem& problem, const PlanOptions& options = {});

/// Names a set of buffers that together cannot fit into a capacity.
struct PlanConflict {
  /// Indices of the buffers, ascending. Empty unless it is proved that the problem does not fit.
  std::vector<std::int32_t> buffers;
  /// Whether it is proved that the set fits as soon as any one of its buffers is removed. False if the limit ended the
  /// search.
  bool irreducible = false;
};

/// Finds a small set of buffers that cannot fit into options.capacity. Starts with all buffers, and removes buffers as
/// long as the remaining ones provably do not fit. Calls find_plan() O(b) times for b buffers. Throws InputError if
/// there is no capacity, and as greedy_plan() does.
PlanConflict irreducible_conflict(const PlanProblem& problem, const PlanOptions& options);

/// Makes the buffers of a schedule: one for every output that has bytes, with the output's lifetime, and one for the
/// scratch of every step that has scratch. If an in-place node overwrites an input, its output takes over the storage
/// of the input. This requires that the input is not used afterwards. Throws InputError if the schedule is invalid.
/// O((T + sum of in-degrees) log T) for T steps.
PlanProblem plan_problem(const core::Graph& graph, const core::Schedule& schedule);

/// Makes the buffers of a schedule's copies on the host (core::host_copies). Buffer i holds the copy that evict i
/// makes.
PlanProblem host_plan_problem(const core::Graph& graph, const core::Schedule& schedule);
/// Plans a schedule's copies on the host, and adds this plan to `plan`, the plan of the same schedule on the device.
/// Uses `options` without the capacity and the guards.
void plan_host(const core::Graph& graph, const core::Schedule& schedule, const PlanOptions& options, core::Plan& plan);

/// Makes the buffers of the given specs. Buffer i is specs[i], with times renumbered without gaps. Throws InputError if
/// a spec has lower >= upper, or a gap that is not inside its lifetime.
PlanProblem plan_problem(const std::vector<core::BufferSpec>& specs);

/// Holds a schedule with its plan.
struct PlannedOrder {
  core::Schedule schedule;
  PlanSolution plan;
};

/// Plans a schedule. If the plan exceeds options.capacity although the peak does not, also plans other orders of the
/// same steps, and returns the order with the lowest plan. In all these orders, memory stays within the capacity, and
/// every step reads the results of the same steps, so the cost is the same. If options.capacity is absent, the
/// schedule's peak with sizes rounded up to the alignment takes its place. Schedules of more than 20,000 steps keep
/// their order, as do schedules with transfers. Throws as plan_problem() does.
PlannedOrder plan_some_order(const core::Graph& graph, const core::Schedule& schedule, const PlanOptions& options);

/// Finds a plan of a schedule, on the device and on the host. The status concerns only the plan on the device.
PlanSolution find_plan(const core::Graph& graph, const core::Schedule& schedule, const PlanOptions& options = {});
/// Returns the plan of find_plan().
core::Plan plan_memory(const core::Graph& graph, const core::Schedule& schedule, const PlanOptions& options = {});
/// Finds a plan of the given specs by find_plan(). In the result, `buffers[i]` is the buffer of specs[i], with `last` =
/// upper - 1.
core::Plan plan_buffers(const std::vector<core::BufferSpec>& specs, const PlanOptions& options = {});

}  // namespace cairn::solvers
