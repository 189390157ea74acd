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

/// The nodes that each step of a ChainProblem runs, in the order in which they run. The problem must come from
/// block_problem().
struct BlockSchedules {
  struct Block {
    std::vector<core::NodeId> forward;  ///< nodes of a step of kind ChainStep::Kind::forward
    std::vector<core::NodeId> once;     ///< nodes that must also run when the block runs forward for the first time
    std::vector<LayerOption> ways;
    std::vector<LayerOption> turns;  ///< nodes of each turn (ChainTurn), all of them in LayerOption::backward
  };
  std::vector<Block> blocks;
};

/// Makes the stages of a chain of blocks, with the non-dominated ways to run each stage. Stores the nodes of these ways
/// in `schedules`. Equal blocks are computed once. When the watch expires, only the search for further ways ends;
/// everything else is completed.
ChainProblem block_problem(const core::Graph& graph, const BlockChain& chain, core::Stopwatch& watch,
                           BlockSchedules& schedules);

/// Returns the schedule of the whole graph that the steps describe. It can contain steps whose values nothing reads.
core::Schedule flat_schedule(const core::Graph& graph, const BlockSchedules& schedules,
                             std::span<const ChainStep> steps);

}  // namespace cairn::solvers
