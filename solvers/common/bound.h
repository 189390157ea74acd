#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

/// This file defines the types in which a solver says what it has proved about its answer, and for which set of
/// schedules the proof holds.
namespace cairn::solvers {

enum class Status : std::uint8_t {
  /// The answer is within the budget (for a plan: within the capacity), and it is proved that no cheaper answer is
  /// within the budget. If there is no budget, it is proved that no answer has a lower peak.
  optimal,
  feasible,    ///< the answer is within the budget; without a budget: the answer is valid
  infeasible,  ///< it is proved that no answer is within the budget, because the budget is below a lower bound
  not_found,   ///< no answer within the budget was found, but one may exist
};
std::string_view to_string(Status status);

/// Says why a solver returned.
enum class Stop : std::uint8_t {
  ended,        ///< the solver has tried everything that it can try
  proved,       ///< it is proved that no schedule in the scope is better
  stagnated,    ///< the search found nothing better during a large part of the limit
  limit,        ///< the limit of time or work was reached
  interrupted,  ///< Limit::stop was set
};
std::string_view to_string(Stop stop);

enum class OrderRule : std::uint8_t {
  free,   ///< any topological order
  input,  ///< each node runs for the first time in the order of Graph::input_order
  /// The rule `input`, with a further rule for repeated runs, as in Checkmate (Jain et al. 2020). A stage consists of
  /// the steps between two consecutive first runs of nodes. Within a stage, nodes run again in the input order, each at
  /// most once. So a value cannot be freed and computed again within one stage.
  stages,
};

/// Describes a set of schedules: all schedules that follow the rule `order` and run no node more than `max_occurrences`
/// times.
struct Scope {
  OrderRule order = OrderRule::free;
  std::int32_t max_occurrences = 0;  ///< largest number of runs of one node; 1: no recomputation; 0: any number

  bool operator==(const Scope&) const = default;
  /// Returns whether this scope contains every schedule of the scope `inner`. If so, a bound that is proved for this
  /// scope also holds for `inner`.
  bool contains(const Scope& inner) const;
  /// Returns whether this scope contains the schedule, which must be valid. O(T) for T steps.
  bool contains(const core::Graph& graph, const core::Schedule& schedule) const;
};
inline constexpr Scope kAnySchedule{};
inline constexpr Scope kWithoutRecomputation{OrderRule::free, 1};

/// Returns the scope of the schedules that are in both `a` and `b`.
Scope intersection(const Scope& a, const Scope& b);
/// Describes the scope in words, for example "any schedule", "without recomputation" or "input order kept in every
/// stage, at most 3 occurrences of a node".
std::string describe(const Scope& scope);

/// Describes a lower bound for all schedules in `scope`, either on their peak in bytes or on their cost in the graph's
/// unit. A bound on the cost that was found under a budget holds only for the schedules within that budget.
struct Bound {
  std::int64_t value = 0;
  Scope scope = kAnySchedule;
};

}  // namespace cairn::solvers
