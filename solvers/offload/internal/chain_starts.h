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

/// Finds schedules of a training graph that is a chain of blocks. Uses the dynamic program of solvers/remat/rotor,
/// which can also move values to the host (dynamic_program.h).
class ChainStarts {
 public:
  /// Divides the graph into chains of blocks, and measures the blocks. If the graph cannot be divided in this way,
  /// cheapest() returns nothing.
  ChainStarts(const core::Graph& graph, const core::Link& link, core::Stopwatch& watch);

  /// Finds the cheapest persistent schedule within the budget. A schedule is persistent if the input of each block is
  /// either freed right after the next forward run of the block, or stays in memory until the block has run backward
  /// (dynamic_program.h). In this search, moving a value to the host and back costs `price` times the duration of the
  /// two copies, and the value takes no memory on the device in between. Returns only the steps of the schedule;
  /// offload() finds the transfers. Returns nothing if there is no such schedule, or if the watch expires.
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
  /// For each value, the time of its copies to the host and back; kNoMove: it cannot be moved.
  std::vector<double> copies_;
  std::vector<Chain> chains_;
};

}  // namespace cairn::solvers::offloading
