#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/link.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/bound.h"

/// Searches for transfers between device and host (evicts and fetches) that bring a schedule within a memory budget, in
/// combination with recomputation.
namespace cairn::solvers {

struct OffloadOptions {
  core::Link link;
  std::int64_t budget = 0;                  ///< largest number of bytes in use on the device
  std::optional<std::int64_t> host_budget;  ///< largest number of bytes on the host; absent: any number
  /// Whether the search may turn recomputations into transfers and transfers into recomputations, and move steps.
  /// Otherwise the search keeps the steps of the schedules from which it starts.
  bool change_steps = true;
  Scope scope;  ///< rules that changed steps must keep to; OrderRule::stages allows no changes
  /// A lower bound on the makespan; the search ends when it finds a makespan that is not above this number.
  std::int64_t enough = 0;
  core::Limit limit;
  std::uint64_t seed = 0;
  /// Called with the makespan of each better schedule that is found.
  std::function<void(std::int64_t makespan, double seconds)> progress = {};
};

/// Holds a schedule with its measures. If no schedule within the budgets was found, `fits` is false, and `schedule` is
/// the schedule found that exceeds the budgets least.
struct OffloadSolution {
  bool fits = false;
  core::Schedule schedule;
  std::int64_t peak = 0;       ///< largest number of bytes in use on the device
  std::int64_t host_peak = 0;  ///< largest number of bytes on the host
  std::int64_t cost = 0;       ///< sum of the costs of all steps
  std::int64_t makespan = 0;   ///< time with all waits, in the graph's unit of cost
  std::int64_t work = 0;
  Stop stop = Stop::ended;
  /// Further schedules that fit and that have different steps, the fastest first. One of them can have a lower plan
  /// than `schedule`.
  std::vector<core::Schedule> others;
};

/// Searches for a schedule of least makespan within the budgets. `starts` are valid schedules, whose transfers are kept
/// as far as possible. With change_steps, the starts should range from schedules of high peak and low cost to schedules
/// within the budget. The search then finds out which part of the memory is best saved by transfers, and which by
/// recomputation. For each start,
/// - a construction adds transfers (offload/internal/construct.h);
/// - simulated annealing changes the times of these transfers, and which values are transferred
/// (offload/internal/improve.h).
///
/// Then the search changes recomputations of the best schedules into transfers and back, and the order of their steps.
/// The result is never worse than a start that fits. Deterministic under a limit of work. Throws InputError if there is
/// no start, or if a start is invalid.
OffloadSolution offload(const core::Graph& graph, std::span<const core::Schedule> starts,
                        const OffloadOptions& options);

/// Adds transfers to one schedule by the construction alone, without annealing.
OffloadSolution add_transfers(const core::Graph& graph, const core::Schedule& start, const OffloadOptions& options);

/// Finds a schedule with transfers whose peak is as low as possible. Bisects budgets of at least options.budget, and
/// for each budget adds transfers to all starts by the construction alone. In the result, `fits` refers to the last
/// budget that was met, not to options.budget.
OffloadSolution least_peak_with_transfers(const core::Graph& graph, std::span<const core::Schedule> starts,
                                          const OffloadOptions& options);

}  // namespace cairn::solvers
