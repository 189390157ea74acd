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
  /// Addresses in bytes: for each step in order, those of the outputs that have bytes, then that of the scratch, if any
  /// (the order of core::Plan::buffers).
  std::vector<std::int64_t> offsets;
  std::int64_t cost = 0;
};

struct PlacedSearchOptions {
  std::int64_t budget = 0;  ///< bytes that all values have to fit into
  Scope scope;              ///< schedules to search among, with free or input order
  core::Limit limit;        ///< limit of time or work
  std::uint64_t seed = 0;
  std::int64_t enough = -1;  ///< cost that suffices: a schedule of at most this cost ends the search
  int islands = 0;           ///< number of parallel searches, a thread each; 0: one a core, two under a work limit
  /// Called with each schedule that fits and is cheaper than all before, one call at a time.
  std::function<void(const PlacedSchedule&)> found;
};

struct PlacedSolution {
  std::optional<PlacedSchedule> best;  ///< cheapest schedule that fits; empty: none was met
  std::int64_t work = 0;               ///< work done, in the unit of core::Limit::work
  bool timed_out = false;              ///< whether the limit or its stop flag ended the search
};

/// Whether search_placed() takes the graph: no node takes over another one's storage.
bool can_search_placed(const core::Graph& graph);

/// Finds the cheapest schedule with addresses within a budget. Order, recomputation and addresses are searched at once,
/// by annealing (solvers/remat/anneal/annealer.h, placement.h). Bytes that two live values share have a price: low at
/// first, so that the search passes through schedules that do not fit, then rising until nothing is shared any more. If
/// sizes, budget and the given offsets are multiples of an alignment, so are the offsets found.
///
/// `starts`: valid schedules within the scope, at least one, with any offsets. They need not fit; one that does is
/// never lost. Without a limit, ends after two long runs that brought nothing. Gives the same answer everywhere for a
/// seed and a work limit. Throws std::logic_error without a start, and for graphs that it does not take.
PlacedSolution search_placed(const core::Graph& graph, const std::vector<PlacedSchedule>& starts,
                             const PlacedSearchOptions& options);

}  // namespace cairn::solvers
