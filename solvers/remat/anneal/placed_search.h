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

/// A schedule, and where each of its values lies.
struct PlacedSchedule {
  core::Schedule schedule;
  /// Bytes: step after step, of each output that has bytes, then of the scratch, if any (the order of
  /// core::Plan::buffers).
  std::vector<std::int64_t> offsets;
  std::int64_t cost = 0;
};

struct PlacedSearchOptions {
  std::int64_t budget = 0;  ///< bytes that all values must fit into
  Scope scope;              ///< order free or that of the input
  core::Limit limit;        ///< of time or work
  std::uint64_t seed = 0;
  std::int64_t enough = -1;  ///< a schedule that costs no more ends the search
  int islands = 0;           ///< searches side by side, a thread each; 0: one a core, under a work limit two
  std::function<void(const PlacedSchedule&)> found;  ///< a cheaper one that fits; from one thread at a time
};

struct PlacedSolution {
  std::optional<PlacedSchedule> best;  ///< none where none that was met fits
  std::int64_t work = 0;               ///< the unit of core::Limit::work
  bool timed_out = false;              ///< the limit, or somebody's stop, ended the search
};

/// Whether this search takes the graph: no node takes over another one's storage.
bool can_search_placed(const core::Graph& graph);

/// The cheapest schedule with addresses within a budget: order, recomputation and addresses are searched at once, by
/// annealing (internal/annealer.h, internal/placement.h). What shares bytes has a price, low at first so that the
/// search passes through schedules that do not fit, and rising until nothing is shared any more. Where sizes,
/// budget and the offsets given are multiples of an alignment, so are the offsets found.
///
/// `starts`: valid schedules within the scope, at least one, with any offsets. They need not fit; one that does is
/// never lost.  Without a limit it ends after two long runs that brought nothing.
/// The same answer everywhere for a seed and a work limit. Throws std::logic_error without a start, and for graphs that
/// it does not take.
PlacedSolution search_placed(const core::Graph& graph, const std::vector<PlacedSchedule>& starts,
                             const PlacedSearchOptions& options);

}  // namespace cairn::solvers
