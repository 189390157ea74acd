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

/// The nodes for which the steps of a ChainProblem stand that block_problem() made, in the order in which they run.
struct BlockSchedules {
  struct Block {
    std::vector<core::NodeId> forward;  ///< nodes of a step of kind ChainStep::Kind::forward
    std::vector<core::NodeId> once;     ///< nodes that must run besides, the first time that the block runs forward
    std::vector<LayerOption> ways;
    std::vector<LayerOption> turns;  ///< nodes of the turns; `backward` holds all of them
  };
  std::vector<Block> blocks;
};

/// Makes the stages of a chain of blocks, with the non-dominated ways to run each, and the nodes that they stand for.
/// Equal blocks are computed once. The watch only ends the search for ways, not the rest.
ChainProblem block_problem(const core::Graph& graph, const BlockChain& chain, core::Stopwatch& watch,
                           BlockSchedules& schedules);

/// Writes out the schedule of the whole graph for which these steps stand. Some of its steps may make values that
/// nothing reads.
core::Schedule flat_schedule(const core::Graph& graph, const BlockSchedules& schedules,
                             std::span<const ChainStep> steps);

}  // namespace cairn::solvers
