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
#include "cairn/solvers/common/accelerator.h"
#include "cairn/solvers/common/bound.h"

namespace cairn::sim {
class Simulator;
}

namespace cairn::solvers {

struct TreeDecomposition;

struct Progress {
  std::int64_t peak = 0, cost = 0;  ///< peak in bytes and cost of the best schedule so far
  double seconds = 0;
};

/// Options that every solver understands.
struct SolveOptions {
  std::optional<std::int64_t> budget;    ///< most bytes of peak; absent: least peak first, then least cost
  std::optional<std::int64_t> max_cost;  ///< without a budget: most cost of the schedule, whose peak is to be least
  /// If true, costs do not matter: with a budget, the first schedule within the budget ends the search; without one,
  /// only the peak counts. Read by `auto` and search().
  bool peak_alone = false;
  /// A valid schedule to start from; not owned. Ignored if it is outside the scope.
  const core::Schedule* start = nullptr;
  Scope scope;  ///< schedules to look among; a solver that cannot keep to it refuses (SolverInfo::solve)
  core::Limit limit;
  std::uint64_t seed = 0;  ///< seed of solvers that use random numbers
  /// Bytes for tables and states (solvers/order/); a search that needs more says so and stops.
  std::int64_t memory_bytes = std::int64_t{2} << 30;
  /// Device that takes over the searches it can; not owned; nullptr: the host does all.
  Accelerator* accelerator = nullptr;
  /// Simulator that evaluates many schedules at once; not owned; nullptr: none.
  sim::Simulator* simulator = nullptr;
  /// A valid tree decomposition of the graph, to be used by some solvers (registry.h); not owned.
  const TreeDecomposition* decomposition = nullptr;
  std::function<void(const Progress&)> progress;  ///< called after each schedule tried
  /// The solver's own options by name (SolverInfo::options); absent ones have their default.
  std::map<std::string, std::int64_t, std::less<>> own;
};

/// Measures of a schedule: peak in bytes, cost in the graph's unit.
struct Tradeoff {
  std::int64_t peak = 0, cost = 0;
};

/// A schedule and its measures. `schedule` has no steps only if status is infeasible or not_found and no valid schedule
/// was found. If status is not_found, it may hold the known schedule of the lowest peak, which exceeds the budget.
struct Solution {
  Status status = Status::not_found;
  /// The set of schedules that status is about: the scope asked for, or the part of it in which the solver looks.
  Scope scope;
  core::Schedule schedule;
  std::int64_t peak = 0;  ///< peak in bytes, as the fast evaluator computes it
  std::int64_t cost = 0;
  /// Best proved bounds on peak and cost, for a scope that contains `scope`; the bound on the cost is under the budget.
  Bound peak_bound, cost_bound;
  /// Lowest peak of all schedules met, in bytes: the least budget known to be feasible.
  std::int64_t least_peak = 0;
  /// Name (SolverInfo::name) of the solver that met least_peak; empty: the solver asked.
  std::string_view least_peak_by;
  /// A few other valid schedules within the budget, by ascending cost, for callers with demands that a solver ignores,
  /// e.g. on the plan. Empty for most solvers.
  std::vector<core::Schedule> others;
  /// Peaks and costs of schedules met, none better than another in both; ascending peak.
  std::vector<Tradeoff> tradeoffs;
  double best_seconds = 0;  ///< time at which the returned schedule was found
  std::int64_t work = 0;    ///< work done in node visits, the unit of core::Limit::work
  bool timed_out = false;   ///< whether a limit ended the search
  Stop stop = Stop::ended;  ///< why the search ended
};

}  // namespace cairn::solvers
