#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/bound.h"

namespace cairn::solvers {

/// Holds a schedule with the addresses of its values.
struct PlacedSchedule {
  core::Schedule schedule;
  /// Addresses in bytes, in the order of core::Plan::buffers. For each step, there are the addresses of its outputs of
  /// more than 0 bytes, followed by the address of its scratch, if any.
  std::vector<std::int64_t> offsets;
  std::int64_t cost = 0;
};

struct PlacedSearchOptions {
  std::int64_t budget = 0;  ///< bytes of the arena in which all values must be placed
  Scope scope;              ///< the schedules to search; its order rule must be `free` or `input`
  core::Limit limit;
  std::uint64_t seed = 0;
  /// The search ends at the first schedule that fits and costs at most this much.
  std::int64_t enough = -1;
  /// Number of parallel searches, one thread each. 0: one for each core, or two under a work limit.
  int islands = 0;
  /// Called with each schedule that fits the budget and is cheaper than all earlier ones. Calls never overlap.
  std::function<void(const PlacedSchedule&)> found;
};

struct PlacedSolution {
  std::optional<PlacedSchedule> best;  ///< absent if no schedule that fits was found
  std::int64_t work = 0;               ///< in the unit of core::Limit::work
  bool timed_out = false;              ///< whether the limit or its stop flag ended the search
};

/// Returns whether search_placed() accepts the graph. It accepts each graph in which no node's output takes over the
/// storage of an input.
bool can_search_placed(const core::Graph& graph);

/// Finds the cheapest schedule with addresses within a budget. Changes order, recomputation and addresses together by
/// annealing (annealer.h and placement.h). A schedule fits if no two values that are in memory at the same time share
/// bytes. The search minimises the cost plus a price for shared bytes. At first the price is low, so that the search
/// can pass through schedules that do not fit. The price rises until no bytes are shared. If sizes, budget and the
/// given offsets are multiples of an alignment, the offsets of the result are too.
///
/// `starts` are one or more valid schedules that options.scope allows, with any offsets. They need not fit. The result
/// costs no more than the cheapest start that fits. Without a limit, the search ends when two consecutive long
/// annealing runs have not improved the best schedule. For the same seed and work limit the answer is the same on every
/// machine. Throws std::logic_error if there is no start or the graph is not accepted.
PlacedSolution search_placed(const core::Graph& graph, const std::vector<PlacedSchedule>& starts,
                             const PlacedSearchOptions& options);

}  // namespace cairn::solvers
