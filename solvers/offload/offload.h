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

/// Searches for transfers between device and host that bring a schedule within a budget, together with its
/// recomputation.
namespace cairn::solvers {

struct OffloadOptions {
  core::Link link;
  std::int64_t budget = 0;                  ///< bytes of the device
  std::optional<std::int64_t> host_budget;  ///< bytes of the host; absent: any number
  /// Whether the search may turn recomputations into transfers and transfers into recomputations, and move steps.
  /// Otherwise it keeps the steps of the starts.
  bool change_steps = true;
  Scope scope;              ///< rules that changed steps keep to; OrderRule::stages allows no changes
  std::int64_t enough = 0;  ///< the search ends at a makespan of at most this number; a proved lower bound
  core::Limit limit;
  std::uint64_t seed = 0;
  /// Called with the makespan of each better schedule that is found.
  std::function<void(std::int64_t makespan, double seconds)> progress = {};
};

/// A schedule with its measures. If no schedule within the budgets was found, `fits` is false, and `schedule` is the
/// one closest to them.
struct OffloadSolution {
  bool fits = false;
  core::Schedule schedule;
  std::int64_t peak = 0;       ///< bytes of the device
  std::int64_t host_peak = 0;  ///< bytes of the host
  std::int64_t cost = 0;       ///< sum of the costs of all steps
  std::int64_t makespan = 0;   ///< time with all waits, in the graph's unit of cost
  std::int64_t work = 0;
  Stop stop = Stop::ended;
  /// Other schedules that fit, with other steps, the fastest first. One of them can have a lower plan.
  std::vector<core::Schedule> others;
};

/// Finds a schedule of least makespan within the budgets. `starts` are valid schedules; their transfers are kept as far
/// as possible. With change_steps, they should reach from schedules of high peak and low cost to schedules within the
/// budget, because the search finds out how much of the memory transfers save best, and how much recomputation. For
/// each start,
/// - a construction adds transfers (offload/internal/construct.h);
/// - simulated annealing changes their times and their choice (offload/internal/improve.h).
/// Then the search changes recomputations of the best schedules into transfers and back, and the order of their steps.
/// The result is never worse than a start that fits. Deterministic under a limit of work. Throws InputError if there is
/// no start or one is invalid.
OffloadSolution offload(const core::Graph& graph, std::span<const core::Schedule> starts,
                        const OffloadOptions& options);

/// Adds transfers to one schedule by the construction alone, without annealing.
OffloadSolution add_transfers(const core::Graph& graph, const core::Schedule& start, const OffloadOptions& options);

/// Finds a schedule with transfers whose peak is as low as possible, by bisection over budgets with the construction
/// alone. Looks at the same starts. The result fits into its own peak.
OffloadSolution least_peak_with_transfers(const core::Graph& graph, std::span<const core::Schedule> starts,
                                          const OffloadOptions& options);

}  // namespace cairn::solvers
