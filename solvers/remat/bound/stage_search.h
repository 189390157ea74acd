#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/remat/bound/stage_prices.h"
#include "cairn/solvers/remat/bound/stage_program.h"

namespace cairn::solvers {

/// Holds the result of search_relaxation(). The relaxation is the simpler problem of cost_bound.h.
struct StageSearchAnswer {
  bool complete = false;  ///< if false, time or memory ran out, and nothing is proved
  bool left_out = false;  ///< whether states were left out because all solutions from them cost more than `most_extra`
  /// Extra cost of the best solution of the relaxation, in units of FirstRunStages::cost_unit(). The extra cost is the
  /// cost minus the cost of running each node once. Absent if no solution with an extra cost of at most `most_extra`
  /// was found.
  std::optional<std::int64_t> extra;
  /// schedule of the best solution; it can exceed the budget, because the relaxation does not count all memory
  core::Schedule schedule;
};

/// Solves the relaxation by a search that goes through the stages (see FirstRunStages) in order. A state after stage t
/// consists of the values held during the first run of c_t and of the nodes outside the chain that have run. In each
/// stage, the search chooses nodes to run again and values to drop. It drops no value that could be kept without
/// exceeding the budget.
///
/// The prices bound the cost of the remaining stages from below. A state is left out if its cost plus this bound
/// exceeds `most_extra`, or if another state of the same stage dominates it: in the other state, the same nodes have
/// run, all values of the first state are held, and the cost is no higher. The result can be higher than the optimum of
/// StageProgram, because the search counts more memory: a value that stays in memory between two first runs of the
/// chain also counts during the runs between them. The search gives up if its states take more than `memory_bytes`
/// bytes.
StageSearchAnswer search_relaxation(const FirstRunStages& stages, const StagePrices& prices, std::int64_t most_extra,
                                    std::int64_t memory_bytes, core::Stopwatch& watch);

}  // namespace cairn::solvers
