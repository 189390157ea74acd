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
  std::int64_t peak = 0, cost = 0;  ///< of the best schedule so far
  double seconds = 0;
};

/// What every solver understands.
struct SolveOptions {
  std::optional<std::int64_t> budget;    ///< bytes of peak; absent: least peak first, then least cost
  std::optional<std::int64_t> max_cost;  ///< without a budget: the least peak of schedules that cost no more
  /// Costs do not matter: a schedule within the budget ends the search, and one without a budget is for the peak alone.
  /// `auto` and search() look at it.
  bool peak_alone = false;
  /// A valid schedule to start from; not owned. One outside the scope is ignored.
  const core::Schedule* start = nullptr;
  Scope scope;  ///< where to look; a solver that cannot keep to it refuses (SolverInfo::solve)
  core::Limit limit;
  std::uint64_t seed = 0;  ///< for solvers that draw random numbers
  /// Bytes for tables and states (solvers/order/); what needs more says so and stops.
  std::int64_t memory_bytes = std::int64_t{2} << 30;
  Accelerator* accelerator = nullptr;                ///< takes over what it can; not owned; nullptr: the host does all
  sim::Simulator* simulator = nullptr;               ///< evaluates many schedules at once; likewise
  const TreeDecomposition* decomposition = nullptr;  ///< a valid one of the graph, to be used; not owned; see registry
  std::function<void(const Progress&)> progress;     ///< called whenever a schedule was tried
  /// The solver's own options by name (SolverInfo::options); what is absent has its default.
  std::map<std::string, std::int64_t, std::less<>> own;
};

/// What some schedule reaches: peak in bytes, cost in the graph's unit.
struct Tradeoff {
  std::int64_t peak = 0, cost = 0;
};

/// A schedule and its measures. `schedule` is empty (no steps) only where status is infeasible or not_found and nothing
/// valid was found; with not_found it may hold the lowest-peak schedule known, which exceeds the budget.
struct Solution {
  Status status = Status::not_found;
  Scope scope;  ///< what status is about: the scope asked for, or that part of it in which the solver looks
  core::Schedule schedule;
  std::int64_t peak = 0;  ///< bytes, by the fast evaluator
  std::int64_t cost = 0;
  Bound peak_bound,
      cost_bound;               ///< the best proved, each of a scope that contains `scope`; the cost's under the budget
  std::int64_t least_peak = 0;  ///< lowest peak of any schedule met while solving: the least budget known feasible
  std::string_view least_peak_by;  ///< SolverInfo::name of who met it; empty: the solver itself
  /// A few other valid schedules within the budget, by ascending cost, for callers that need more of a schedule than a
  /// solver looks at; none of most solvers.
  std::vector<core::Schedule> others;
  std::vector<Tradeoff> tradeoffs;  ///< of schedules met while solving: no other is better in both; ascending peak
  double best_seconds = 0;          ///< when the returned schedule was found
  std::int64_t work = 0;            ///< node visits, the unit of core::Limit::work
  bool timed_out = false;           ///< a limit ended the search
  Stop stop = Stop::ended;          ///< why it ended
};

}  // namespace cairn::solvers
