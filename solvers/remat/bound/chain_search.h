#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/remat/bound/chain_prices.h"
#include "cairn/solvers/remat/bound/chain_program.h"

namespace cairn::solvers {

struct ChainSearchAnswer {
  bool complete = false;  ///< whether the search is complete; if false, time or memory ran out, and nothing is proved
  bool left_out = false;  ///< whether some states were left out because of their cost
  /// Cost of the best solution of the relaxation, in units above the cost of running each node once. Absent if this
  /// cost is above `most_extra`.
  std::optional<std::int64_t> extra;
  core::Schedule schedule;  ///< schedule of the best solution; can exceed the budget
};

/// Solves the relaxation (see ChainStages) by a search through the states of one stage after another. A state consists
/// of the values held during the first run of c_t and of the nodes outside the chain that have run. From a state, the
/// search chooses an inclusion-minimal set of values to drop, and the nodes to run again. The prices bound the
/// remaining cost from below. A state is left out in two cases: its bound exceeds `most_extra`, or another state holds
/// all of its values and costs no more. The result can be a higher bound than that of ChainProgram. The reason is that
/// a value which stays in memory between two first runs of the chain is counted during all runs between them.
ChainSearchAnswer search_chain(const ChainStages& stages, const ChainPrices& prices, std::int64_t most_extra,
                               std::int64_t memory_bytes, core::Stopwatch& watch);

}  // namespace cairn::solvers
