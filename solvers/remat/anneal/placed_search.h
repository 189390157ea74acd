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
  /// Bytes. For each step in order: the outputs that have bytes, then the scratch, if any (the order of
  /// core::Plan::buffers).
  std::vector<std::int64_t> offsets;
  std::int64_t cost = 0;
};

struct PlacedSearchOptions {
  std::int64_t budget = 0;  ///< bytes that all values have to fit into
  Scope scope;              ///< with free or input order
  core::Limit limit;        ///< of time or work
  std::uint64_t seed = 0;
  std::int64_t enough = -1;  ///< a schedule that costs no more ends the search
  int islands = 0;           ///< parallel searches, a thread each; 0: one a core, two under a work limit
  std::function<void(const PlacedSchedule&)> found;  ///< called with each cheaper one that fits, one call at a time
};

struct PlacedSolution {
  std::optional<PlacedSchedule> best;  ///< empty: no schedule that was met fits
  std::int64_t work = 0;               ///< in the unit of core::Limit::work
  bool timed_out = false;              ///< the limit or its stop flag ended the search
};

/// Whether search_placed() takes the graph: no node takes over another one's storage.
bool can_search_placed(const core::Graph& graph);

/// The cheapest schedule with addresses within a budget. Order, recomputation and addresses are searched at once, by
/// annealing (internal/annealer.h, internal/placement.h). Shared bytes have a price: low at first, so that the search
/// passes through schedules that do not fit, then rising until nothing is shared any more. If sizes, budget and the
/// given offsets are multiples of an alignment, so are the offsets found.
///
/// `starts`: valid schedules within the scope, at least one, with any offsets. They need not fit; one that does is
/// never lost. Without a limit, ends after two long runs that brought nothing. Gives the same answer everywhere for a
/// seed and a work limit. Throws std::logic_error without a start, and for graphs that it does not take.
PlacedSolution search_placed(const core::Graph& graph, const std::vector<PlacedSchedule>& starts,
                             const PlacedSearchOptions& options);

}  // namespace cairn::solvers
