#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/remat/rotor/block_chain.h"
#include "cairn/solvers/remat/rotor/dynamic_program.h"
#include "cairn/solvers/remat/rotor/layers.h"

namespace cairn::solvers {

/// Lists, in order, the nodes that each step of a chain's schedule runs. Steps belong to a ChainProblem made by
/// block_problem(). A stage of this problem is a block of the chain (block_chain.h).
struct BlockSchedules {
  struct Block {
    std::vector<core::NodeId> forward;  ///< nodes of the forward run that saves nothing for the backward part
    /// Nodes that must also run when the block runs forward for the first time, whichever of the alternatives in `ways`
    /// is used: for example, pinned nodes.
    std::vector<core::NodeId> once;
    /// Nodes that each of ChainStage::ways runs.
    std::vector<LayerOption> ways;
    /// Nodes that each of ChainStage::turns runs, all in LayerOption::backward.
    std::vector<LayerOption> turns;
  };
  std::vector<Block> blocks;
};

/// Makes a ChainProblem whose stages are the blocks of the chain. Measures several ways and turns of each stage, and
/// keeps those that are not dominated. A way is one choice of what the forward part saves for the backward part. A turn
/// runs both parts directly one after the other (dynamic_program.h). One way or turn dominates another if it is at
/// least as good in every measure. Stores the nodes of the kept ways and turns in `schedules`. Equal blocks are
/// computed once. When the watch expires, each stage gets only the ways found so far, at least one.
ChainProblem block_problem(const core::Graph& graph, const BlockChain& chain, core::Stopwatch& watch,
                           BlockSchedules& schedules);

/// Sets the prices of moves in a problem that block_problem() made (ChainStage::move_time, ChainWay::move_time). A move
/// brings values to the host, and later back to the device. The price of moving several values is the sum of their
/// prices. `price_of` returns kNoMove for a value that cannot be moved.
void price_moves(const core::Graph& graph, const BlockChain& chain, const BlockSchedules& schedules,
                 const std::function<double(core::ValueId)>& price_of, ChainProblem& problem);

/// Returns the schedule of the whole graph for the given steps, without the moves. It can contain steps whose values
/// nothing reads.
core::Schedule flat_schedule(const core::Graph& graph, const BlockSchedules& schedules,
                             std::span<const ChainStep> steps);

}  // namespace cairn::solvers
