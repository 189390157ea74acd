#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/order/device/accelerator.h"

namespace cairn::solvers {

enum class Status : std::uint8_t {
  optimal,     ///< within the budget (or of least peak, without one), proved
  feasible,    ///< within the budget; without a budget: a valid schedule
  infeasible,  ///< proved: the budget is below the lower bound (Solution::lower_bound says for which schedules)
  not_found,   ///< no schedule within the budget was found, and none is excluded either
};
std::string_view to_string(Status status);

struct Progress {
  std::int64_t peak = 0, cost = 0;  ///< of the best schedule so far
  double seconds = 0;
};

/// What every solver understands.
struct SolveOptions {
  std::optional<std::int64_t> budget;  ///< bytes of peak; absent: least peak first, then least cost
  core::Limit limit;
  std::uint64_t seed = 0;  ///< for solvers that draw random numbers
  /// Bytes for tables and states (solvers/order/); what needs more says so and stops.
  std::int64_t memory_bytes = std::int64_t{2} << 30;
  Accelerator* accelerator = nullptr;             ///< takes over what it can; not owned; nullptr: the host does all
  std::function<void(const Progress&)> progress;  ///< called whenever a schedule was tried
};

/// What some schedule reaches: peak in bytes, cost in the graph's unit.
struct Tradeoff {
  std::int64_t peak = 0, cost = 0;
};

/// A schedule and its measures. `schedule` is empty (no steps) only where status is infeasible or not_found and nothing
/// valid was found; with not_found it may hold the lowest-peak schedule known, which exceeds the budget.
struct Solution {
  Status status = Status::not_found;
  core::Schedule schedule;
  std::int64_t peak = 0;  ///< bytes, by the fast evaluator
  std::int64_t cost = 0;
  std::int64_t lower_bound = 0;  ///< bytes: of the peak of any schedule (order solvers: of any without recomputation)
  std::int64_t least_peak =
      0;  ///< lowest peak of any valid schedule met while solving: the least budget known feasible
  std::vector<Tradeoff> tradeoffs;  ///< of schedules met while solving: no other is better in both; ascending peak
  double best_seconds = 0;          ///< when the returned schedule was found
  std::int64_t work = 0;            ///< node visits, the unit of core::Limit::work
  bool timed_out = false;           ///< a limit ended the search
};

}  // namespace cairn::solvers
