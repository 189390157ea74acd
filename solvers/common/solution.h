#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/bound.h"

namespace cairn::sim {
class Simulator;
}

namespace cairn::solvers {

class Accelerator;
class Peers;
struct TreeDecomposition;

struct Progress {
  std::int64_t peak = 0, cost = 0;  ///< peak in bytes and cost of the best schedule so far
  double seconds = 0;
};

/// Holds the options that every solver understands.
struct SolveOptions {
  /// Largest peak allowed, in bytes. Absent: the solver seeks the least peak and, among equal peaks, the least cost.
  std::optional<std::int64_t> budget;
  std::optional<std::int64_t> max_cost;  ///< without a budget: largest cost of the schedule whose peak is minimised
  /// If true, costs do not matter. With a budget, the search ends at the first schedule within the budget. Without a
  /// budget, only the peak is minimised. Only `auto` and search() (remat/anneal/search.h) read this option.
  bool peak_alone = false;
  /// A valid schedule to start from; not owned. Ignored if it is outside the scope.
  const core::Schedule* start = nullptr;
  /// Offsets of the buffers of a plan of `start` (core::offsets_of()); not owned. nullptr: no plan is known. Only the
  /// searches in solvers/fit/ read the offsets, and only if the offsets are valid addresses for the buffers.
  const std::vector<std::int64_t>* start_offsets = nullptr;
  Scope scope;  ///< set of allowed schedules; SolverInfo::solve() refuses a scope that the solver cannot keep to
  core::Limit limit;
  std::uint64_t seed = 0;  ///< seed of solvers that use random numbers
  /// Largest number of bytes for the tables and states of a search in solvers/order/. A search that needs more memory
  /// says so and stops.
  std::int64_t memory_bytes = std::int64_t{2} << 30;
  /// Device that runs every search that it supports; all other searches run on the host. Not owned. nullptr: all
  /// searches run on the host.
  Accelerator* accelerator = nullptr;
  /// Simulator that evaluates many schedules in parallel for solvers that use one. Not owned. nullptr: there is none.
  sim::Simulator* simulator = nullptr;
  /// Other processes that run the same search. Not owned. nullptr: there are none. Only search()
  /// (remat/anneal/search.h) reads this option.
  Peers* peers = nullptr;
  /// A valid tree decomposition of the graph. Not owned. Only some solvers use it (Capabilities::decomposition in
  /// registry.h).
  const TreeDecomposition* decomposition = nullptr;
  std::function<void(const Progress&)> progress;  ///< called after each schedule that the solver tries
  /// Values of the solver's own options by name (SolverInfo::options). An absent option has its default value.
  std::map<std::string, std::int64_t, std::less<>> own;
};

struct Tradeoff {
  std::int64_t peak = 0, cost = 0;
};

/// Holds a schedule and its measures. If the status is infeasible or not_found, `schedule` is the known schedule of
/// lowest peak, which exceeds the budget, or it has no steps, because no valid schedule was found.
struct Solution {
  Status status = Status::not_found;
  /// The schedules for which `status` is proved: the scope asked for, or the smaller scope in which the solver
  /// searches.
  Scope scope;
  core::Schedule schedule;
  std::int64_t peak = 0;  ///< peak in bytes, as core::Evaluator computes it
  std::int64_t cost = 0;
  /// Highest proved lower bounds on peak and cost. Each bound holds for all schedules in `scope`. With a budget, the
  /// bound on the cost holds only for schedules within the budget. With max_cost, the bound on the peak holds only for
  /// schedules that cost at most max_cost.
  Bound peak_bound, cost_bound;
  /// Lowest peak of all schedules found, in bytes. This is the least budget that is known to be feasible.
  std::int64_t least_peak = 0;
  /// Name (SolverInfo::name) of the solver that found the schedule of least_peak. Empty: the solver that was called.
  std::string_view least_peak_by;
  /// A few other valid schedules within the budget, by ascending cost. One of them can be useful if the caller has a
  /// requirement that the solver does not know, for example that a plan of the schedule fits. Most solvers leave this
  /// list empty.
  std::vector<core::Schedule> others;
  /// Peaks and costs of the schedules found, by ascending peak. A schedule is left out if another schedule found is at
  /// most as large in both peak and cost.
  std::vector<Tradeoff> tradeoffs;
  double best_seconds = 0;  ///< time from the start of the search until the returned schedule was found
  std::int64_t work = 0;    ///< work done in node visits, the unit of core::Limit::work
  bool timed_out = false;   ///< whether a limit ended the search
  Stop stop = Stop::ended;
};

}  // namespace cairn::solvers
