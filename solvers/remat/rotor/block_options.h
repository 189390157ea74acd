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

/// What the steps of a ChainProblem made by block_problem() stand for, as nodes in the order in which they run.
struct BlockSchedules {
  struct Block {
    std::vector<core::NodeId> forward;  ///< ChainStep::Kind::forward
    std::vector<core::NodeId> once;     ///< what must run beside any of these the first time
    std::vector<LayerOption> ways;
    std::vector<LayerOption> turns;  ///< all in `backward`
  };
  std::vector<Block> blocks;
};

/// The stages of a chain of blocks, with the ways to run each that no other is better than in every respect, and the
/// nodes behind them. Equal blocks are worked out once; the watch ends the search for ways, not the rest.
ChainProblem block_problem(const core::Graph& graph, const BlockChain& chain, core::Stopwatch& watch,
                           BlockSchedules& schedules);

/// The schedule of the whole graph that these steps stand for. Parts of it may not be read by anything.
core::Schedule flat_schedule(const core::Graph& graph, const BlockSchedules& schedules,
                             std::span<const ChainStep> steps);

}  // namespace cairn::solvers
