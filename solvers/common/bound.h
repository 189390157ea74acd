#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

/// The claim of an answer: how good it is, and among which schedules.
namespace cairn::solvers {

enum class Status : std::uint8_t {
  /// Proved: within the budget (or capacity), and none is cheaper; without a budget, none has a lower peak.
  optimal,
  feasible,    ///< within the budget; without a budget, any valid answer
  infeasible,  ///< proved: the budget is below a lower bound
  not_found,   ///< no answer within the budget was found, and the existence of one is not excluded
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
  /// As `input`; in addition, nodes that run again between two first runs do so in that order, once each: the stages of
  /// Checkmate (Jain et al. 2020). Narrower than `input`, since a stage cannot free a value and compute it again.
  stages,
};

/// A set of schedules: all that keep the order rule and run no node more often than allowed.
struct Scope {
  OrderRule order = OrderRule::free;
  std::int32_t max_occurrences = 0;  ///< most runs of one node; 1: no recomputation; 0: any number

  bool operator==(const Scope&) const = default;
  /// Whether every schedule in the scope `inner` is in this scope as well. A bound proved for this scope then holds for
  /// `inner`.
  bool contains(const Scope& inner) const;
  /// Whether the valid schedule is in this scope. O(T).
  bool contains(const core::Graph& graph, const core::Schedule& schedule) const;
};
/// The scope of all schedules, and the scope of the schedules that run each node once.
inline constexpr Scope kAnySchedule{};
inline constexpr Scope kWithoutRecomputation{OrderRule::free, 1};

/// The scope of the schedules that are in both `a` and `b`.
Scope intersection(const Scope& a, const Scope& b);
/// Names the scope: "any schedule", "without recomputation", "input order kept", "input order kept in every stage", "at
/// most 3 occurrences of a node", or an order rule and a number of occurrences together.
std::string describe(const Scope& scope);

/// A lower bound for the schedules in `scope`: bytes of peak, or units of cost. A bound on the cost found under a
/// budget holds only for the schedules within the budget.
struct Bound {
  std::int64_t value = 0;
  Scope scope = kAnySchedule;
};

}  // namespace cairn::solvers
