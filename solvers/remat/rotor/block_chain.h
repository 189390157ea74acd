#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"

/// Divides a training graph into a chain of blocks. The forward parts of the blocks run in the order of the chain, and
/// their backward parts run in reverse order.
namespace cairn::solvers {

struct ChainBlock {
  std::vector<core::NodeId> forward, backward;  ///< forward and backward nodes of the block, in the input order
  /// Values that leave the block and are not residents (BlockChain::resident). A value leaves the block if this block
  /// or an earlier one makes it and a forward node of a later block reads it. These values are the checkpoint of the
  /// next block.
  std::vector<core::ValueId> leaving;
};

struct BlockChain {
  std::vector<ChainBlock> blocks;
  std::vector<std::int32_t> block_of;  ///< block of each node, indexed by node
  /// Whether each value is a resident; indexed by value. A resident is made in the forward part and stays in memory
  /// until its last reader has run. A value is a resident if it crosses many blocks, is kept, or cannot be made twice.
  std::vector<std::uint8_t> resident;
  /// Last block to need each value; indexed by value. Backward parts run in reverse order, so this is the lowest of the
  /// blocks that contain a reader. -1: the value is kept.
  std::vector<std::int32_t> last_block;
};

/// Divides the graph as follows:
/// - The forward part is divided between two nodes if at most one value of more than 0 bytes crosses this point. A
/// value crosses the point if it is made before and read by a forward node after. Residents do not count. These are
/// kept values, values of pinned nodes, and values with a reader more than `longest` forward nodes away.
/// - A backward node belongs to the block of its forward node (Graph::forward). If it has no forward node, it belongs
/// to the first block, in the order of the backward pass, in which everything that the node reads is available.
/// - Blocks whose backward parts would not run in reverse order are merged. Afterwards, neighbours are merged until
/// there are at most `most_blocks` (>= 1) blocks.
///
/// O(n log n + m) for n nodes and m inputs. Throws InputError if there is no backward node. Throws InputError that
/// names the nodes if a forward node reads a backward node, or if Graph::forward of a backward node is itself a
/// backward node.
BlockChain find_block_chain(const core::Graph& graph, std::int32_t longest, std::int32_t most_blocks);

}  // namespace cairn::solvers
