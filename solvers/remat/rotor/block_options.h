#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/remat/rotor/block_chain.h"
#include "cairn/solvers/remat/rotor/chain_schedule.h"
#include "cairn/solvers/remat/rotor/layers.h"

namespace cairn::solvers {

/// The nodes that the steps of a ChainProblem made by block_problem() stand for, in the order in which they run.
struct BlockSchedules {
  struct Block {
    std::vector<core::NodeId> forward;  ///< ChainStep::Kind::forward
    std::vector<core::NodeId> once;     ///< nodes that must run beside any of these the first time
    std::vector<LayerOption> ways;
    std::vector<LayerOption> turns;  ///< `backward` holds all nodes
  };
  std::vector<Block> blocks;
};

/// The stages of a chain of blocks, with the non-dominated ways to run each, and the nodes behind them. Equal blocks
/// are computed once. The watch only ends the search for ways, not the rest.
ChainProblem block_problem(const core::Graph& graph, const BlockChain& chain, core::Stopwatch& watch,
                           BlockSchedules& schedules);

/// The schedule of the whole graph that these steps stand for. Nothing may read some parts of it.
core::Schedule flat_schedule(const core::Graph& graph, const BlockSchedules& schedules,
                             std::span<const ChainStep> steps);

}  // namespace cairn::solvers
