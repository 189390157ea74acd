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
  bool complete = false;  ///< whether the search is complete; false: time or memory ran out, and nothing is proved
  bool left_out = false;  ///< whether some states were left out for their cost
  /// Cost of the best solution of the relaxation, in units above the cost of running each node once. Empty if it is
  /// more than `most_extra`.
  std::optional<std::int64_t> extra;
  core::Schedule schedule;  ///< schedule of the best solution; may exceed the budget
};

/// Solves the relaxation by a search through the stages. A state is the set of values held during the first run of c_t
/// and of floating nodes that have run; branches choose the values to drop, a minimal set each time, and the nodes to
/// run again. The prices bound the cost still to be paid. States that lead to more than `most_extra` are left out, as
/// are those that hold less than another one and cost no less. Stronger than ChainProgram: a value that stays in memory
/// from one first run of the chain to the next counts during all runs in between.
ChainSearchAnswer search_chain(const ChainStages& stages, const ChainPrices& prices, std::int64_t most_extra,
                               std::int64_t memory_bytes, core::Stopwatch& watch);

}  // namespace cairn::solvers
