#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/link.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/remat/rotor/block_chain.h"
#include "cairn/solvers/remat/rotor/block_options.h"

namespace cairn::solvers::offloading {

/// Schedules of a training graph that is a chain of blocks, by the dynamic program of solvers/remat/rotor with moves to
/// the host (chain_schedule.h).
class ChainStarts {
 public:
  /// Divides the graph into chains of blocks, and measures the blocks. If the graph is no such chain, there will be no
  /// schedules.
  ChainStarts(const core::Graph& graph, const core::Link& link, core::Stopwatch& watch);

  /// Returns the cheapest persistent schedule within the budget in which a move costs `price` times the duration of
  /// both its copies, and does not take memory while it is away. Without the transfers, which offload() finds. Returns
  /// nothing if there is no such schedule, or if the watch expires.
  std::optional<core::Schedule> cheapest(std::int64_t budget, double price, core::Stopwatch& watch);

 private:
  struct Chain {
    BlockChain blocks;
    BlockSchedules schedules;
    ChainProblem problem;
  };
  std::optional<core::Schedule> cheapest(Chain& chain, std::int64_t budget, double price, double& time,
                                         core::Stopwatch& watch) const;

  const core::Graph& graph_;
  std::vector<double> copies_;  ///< time of both copies of each value, or kNoMove
  std::vector<Chain> chains_;
};

}  // namespace cairn::solvers::offloading
