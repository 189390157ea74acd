#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

/// What an answer claims: how good it is, and among which schedules.
namespace cairn::solvers {

enum class Status : std::uint8_t {
  optimal,     ///< proved: within the budget (or capacity) and none is cheaper; without one, none has a lower peak
  feasible,    ///< within the budget; without a budget: a valid answer
  infeasible,  ///< proved: the budget is below a lower bound
  not_found,   ///< nothing within the budget was found, and nothing is excluded either
};
std::string_view to_string(Status status);

/// Why a solver came back.
enum class Stop : std::uint8_t {
  ended,        ///< it had nothing left to try
  proved,       ///< nothing better exists within the scope
  stagnated,    ///< a long part of the limit brought nothing
  limit,        ///< of time or work
  interrupted,  ///< by Limit::stop
};
std::string_view to_string(Stop stop);

enum class OrderRule : std::uint8_t {
  free,   ///< any topological order
  input,  ///< nodes run for the first time in the order of Graph::input_order
  /// The same, and what runs again between two first runs does so in that order, once: the stages of Checkmate (Jain et
  /// al. 2020). Narrower than `input`: a stage cannot free a value and compute it again.
  stages,
};

/// A set of schedules: those that keep the order rule and in which no node stands more often than allowed.
struct Scope {
  OrderRule order = OrderRule::free;
  std::int32_t max_occurrences = 0;  ///< of each node; 1: no recomputation; 0: any number

  bool operator==(const Scope&) const = default;
  /// Every schedule in `inner` is in this scope as well, so that a bound proved here holds there.
  bool contains(const Scope& inner) const;
  /// Whether the valid schedule is in this scope. O(T).
  bool contains(const core::Graph& graph, const core::Schedule& schedule) const;
};
/// Every schedule / none but those that run each node once.
inline constexpr Scope kAnySchedule{};
inline constexpr Scope kWithoutRecomputation{OrderRule::free, 1};

/// The schedules that are in both.
Scope intersection(const Scope& a, const Scope& b);
/// "any schedule", "without recomputation", "input order kept", "input order kept in every stage", "at most 3
/// occurrences of a node", or both of them.
std::string describe(const Scope& scope);

/// No schedule in `scope` has less than `value`: bytes of peak, or units of cost. Where a budget was asked for, a bound
/// on the cost is about the schedules within it, and means nothing for others.
struct Bound {
  std::int64_t value = 0;
  Scope scope = kAnySchedule;
};

}  // namespace cairn::solvers
