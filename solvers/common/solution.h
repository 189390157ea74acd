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
  std::int64_t peak = 0, cost = 0;  ///< measures of the best schedule so far
  double seconds = 0;
};

/// Options that every solver understands.
struct SolveOptions {
  std::optional<std::int64_t> budget;    ///< bytes of peak; absent: least peak first, then least cost
  std::optional<std::int64_t> max_cost;  ///< without a budget: bound on the cost, under which the peak is to be least
  /// Costs do not matter: with a budget, the first schedule within it ends the search; without one, only the peak
  /// counts. Read by `auto` and search().
  bool peak_alone = false;
  /// A valid schedule to start from; not owned. One outside the scope is ignored.
  const core::Schedule* start = nullptr;
  Scope scope;  ///< schedules to look among; a solver that cannot keep to it refuses (SolverInfo::solve)
  core::Limit limit;
  std::uint64_t seed = 0;  ///< for solvers that use random numbers
  /// Bytes for tables and states (solvers/order/); a search that needs more says so and stops.
  std::int64_t memory_bytes = std::int64_t{2} << 30;
  Accelerator* accelerator = nullptr;                ///< takes over what it can; not owned; nullptr: the host does all
  sim::Simulator* simulator = nullptr;               ///< evaluates many schedules at once; not owned; nullptr: none
  const TreeDecomposition* decomposition = nullptr;  ///< a valid one of the graph, to be used; not owned; see registry
  std::function<void(const Progress&)> progress;     ///< called whenever a schedule was tried
  /// The solver's own options by name (SolverInfo::options); absent ones have their default.
  std::map<std::string, std::int64_t, std::less<>> own;
};

/// Measures of a schedule: peak in bytes, cost in the graph's unit.
struct Tradeoff {
  std::int64_t peak = 0, cost = 0;
};

/// A schedule and its measures. `schedule` is empty (no steps) only if status is infeasible or not_found and no valid
/// schedule was found. With not_found it may hold the known schedule of lowest peak, which exceeds the budget.
struct Solution {
  Status status = Status::not_found;
  Scope scope;  ///< schedules that status is about: the scope asked for, or the part of it in which the solver looks
  core::Schedule schedule;
  std::int64_t peak = 0;  ///< bytes, by the fast evaluator
  std::int64_t cost = 0;
  Bound peak_bound,
      cost_bound;                  ///< best proved bounds, for a scope that contains `scope`; cost: under the budget
  std::int64_t least_peak = 0;     ///< lowest peak of any schedule met, in bytes: the least budget known feasible
  std::string_view least_peak_by;  ///< SolverInfo::name of the solver that met it; empty: this solver
  /// A few other valid schedules within the budget, by ascending cost, for callers that need more of a schedule than a
  /// solver looks at. Most solvers give none.
  std::vector<core::Schedule> others;
  std::vector<Tradeoff> tradeoffs;  ///< measures of schedules met, none better than another in both; ascending peak
  double best_seconds = 0;          ///< time at which the returned schedule was found
  std::int64_t work = 0;            ///< node visits, the unit of core::Limit::work
  bool timed_out = false;           ///< a limit ended the search
  Stop stop = Stop::ended;          ///< why the search ended
};

}  // namespace cairn::solvers
