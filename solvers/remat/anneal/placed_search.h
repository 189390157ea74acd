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

/// A schedule with the addresses of its values.
struct PlacedSchedule {
  core::Schedule schedule;
  /// Addresses in bytes, in the order of core::Plan::buffers. Each step has the addresses of its outputs of more than 0
  /// bytes, followed by the address of its scratch, if any.
  std::vector<std::int64_t> offsets;
  std::int64_t cost = 0;
};

struct PlacedSearchOptions {
  std::int64_t budget = 0;  ///< bytes within which all values must be placed
  Scope scope;              ///< schedules to search among; the scope's order rule must be `free` or `input`
  core::Limit limit;        ///< limit of time or work
  std::uint64_t seed = 0;
  std::int64_t enough = -1;  ///< the search ends at a schedule of at most this cost
  /// Number of parallel searches, one thread each. 0: one for each core, or two under a work limit.
  int islands = 0;
  /// Called with each schedule that fits and is cheaper than all earlier ones. Calls never overlap.
  std::function<void(const PlacedSchedule&)> found;
};

struct PlacedSolution {
  std::optional<PlacedSchedule> best;  ///< cheapest schedule that fits; absent if none was found
  std::int64_t work = 0;               ///< work done, in the unit of core::Limit::work
  bool timed_out = false;              ///< whether the limit or its stop flag ended the search
};

/// Returns whether search_placed() accepts the graph. The graph is accepted if no node takes over the storage of
/// another node.
bool can_search_placed(const core::Graph& graph);

/// Finds the cheapest schedule with addresses within a budget. Changes order, recomputation and addresses together by
/// annealing (annealer.h and placement.h). Bytes that two live values share have a price. At first the price is low, so
/// that the search can pass through schedules that do not fit. Afterwards it rises until no bytes are shared. If sizes,
/// budget and the given offsets are multiples of an alignment, the offsets of the result are too.
///
/// `starts` are one or more valid schedules within the scope, with any offsets; they need not fit. If a start fits, the
/// result is at least as good as that start. Without a limit, the search ends after two long runs without an
/// improvement. For the same seed and work limit the answer is the same on every machine. Throws std::logic_error if
/// there is no start or the graph is not accepted.
PlacedSolution search_placed(const core::Graph& graph, const std::vector<PlacedSchedule>& starts,
                             const PlacedSearchOptions& options);

}  // namespace cairn::solvers
