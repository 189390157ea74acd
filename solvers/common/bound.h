#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

/// The claim of an answer: how good it is, and among which schedules.
namespace cairn::solvers {

enum class Status : std::uint8_t {
  optimal,     ///< proved: within the budget (or capacity) and none is cheaper; without one, none has a lower peak
  feasible,    ///< within the budget; without a budget: a valid answer
  infeasible,  ///< proved: the budget is below a lower bound
  not_found,   ///< nothing within the budget was found, and nothing is excluded
};
std::string_view to_string(Status status);

/// Why a solver returned.
enum class Stop : std::uint8_t {
  ended,        ///< nothing was left to try
  proved,       ///< nothing better exists within the scope
  stagnated,    ///< a long part of the limit brought no improvement
  limit,        ///< the limit of time or work was reached
  interrupted,  ///< Limit::stop was set
};
std::string_view to_string(Stop stop);

enum class OrderRule : std::uint8_t {
  free,   ///< any topological order
  input,  ///< nodes run for the first time in the order of Graph::input_order
  /// `input`, and nodes that run again between two first runs do so in that order, once: the stages of Checkmate (Jain
  /// et al. 2020). Narrower than `input`: a stage cannot free a value and compute it again.
  stages,
};

/// A set of schedules: those that keep the order rule and run no node more often than allowed.
struct Scope {
  OrderRule order = OrderRule::free;
  std::int32_t max_occurrences = 0;  ///< runs of each node; 1: no recomputation; 0: any number

  bool operator==(const Scope&) const = default;
  /// Whether every schedule in `inner` is in this scope as well, so that a bound proved here holds there.
  bool contains(const Scope& inner) const;
  /// Whether the valid schedule is in this scope. O(T).
  bool contains(const core::Graph& graph, const core::Schedule& schedule) const;
};
/// All schedules, and those that run each node once.
inline constexpr Scope kAnySchedule{};
inline constexpr Scope kWithoutRecomputation{OrderRule::free, 1};

/// The schedules that are in both scopes.
Scope intersection(const Scope& a, const Scope& b);
/// Names the scope: "any schedule", "without recomputation", "input order kept", "input order kept in every stage", "at
/// most 3 occurrences of a node", or an order rule and a number of occurrences together.
std::string describe(const Scope& scope);

/// A lower bound for the schedules in `scope`: bytes of peak, or units of cost. Under a budget, a bound on the cost is
/// about the schedules within the budget, and means nothing for others.
struct Bound {
  std::int64_t value = 0;
  Scope scope = kAnySchedule;
};

}  // namespace cairn::solvers
