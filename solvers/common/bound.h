#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

/// What a solver claims about its answer: how good the answer is, and among which schedules.
namespace cairn::solvers {

enum class Status : std::uint8_t {
  /// It is proved that the answer is within the budget (or capacity) and that no cheaper answer is within it. Without a
  /// budget, it is proved that no answer has a lower peak.
  optimal,
  feasible,    ///< the answer is within the budget; without a budget: the answer is valid
  infeasible,  ///< proved: there is no answer, because the budget is below a lower bound
  not_found,   ///< no answer within the budget was found, but one may exist
};
std::string_view to_string(Status status);

/// The reason why a solver returned.
enum class Stop : std::uint8_t {
  ended,        ///< the solver has tried everything that it can try
  proved,       ///< proved: no schedule in the scope is better
  stagnated,    ///< a large part of the limit passed without an improvement
  limit,        ///< the limit of time or work was reached
  interrupted,  ///< Limit::stop was set
};
std::string_view to_string(Stop stop);

enum class OrderRule : std::uint8_t {
  free,   ///< any topological order
  input,  ///< the first runs of the nodes are in the order of Graph::input_order
  /// The order of `input` within stages, as in Checkmate (Jain et al. 2020). A stage is what runs between two
  /// consecutive first runs. The nodes that run again in a stage do so in the input order, each at most once. This
  /// allows fewer schedules than `input`, because a stage cannot free a value and compute the value again.
  stages,
};

/// A set of schedules. It contains all schedules that follow the order rule and run no node more than `max_occurrences`
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
/// The scope of all schedules.
inline constexpr Scope kAnySchedule{};
/// The scope of all schedules that run each node once.
inline constexpr Scope kWithoutRecomputation{OrderRule::free, 1};

/// Returns the scope of the schedules that are in both `a` and `b`.
Scope intersection(const Scope& a, const Scope& b);
/// Returns a description of the scope: "any schedule", "without recomputation", "input order kept", "input order kept
/// in every stage" or "at most 3 occurrences of a node". An order rule and a number of occurrences are joined by a
/// comma.
std::string describe(const Scope& scope);

/// A lower bound on the peak in bytes, or on the cost in units of cost, of the schedules in `scope`. If a bound on the
/// cost was found under a budget, it holds only for the schedules within that budget.
struct Bound {
  std::int64_t value = 0;
  Scope scope = kAnySchedule;
};

}  // namespace cairn::solvers
