#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"

/// Division of a training graph into a chain of blocks, which run forward in one order and backward in the other.
namespace cairn::solvers {

struct ChainBlock {
  std::vector<core::NodeId> forward, backward;  ///< forward and backward nodes of the block, in the input order
  /// Values that leave the block: made in it or before it and read by forward nodes of later blocks, residents
  /// (BlockChain::resident) left out. They are the checkpoint of the next block.
  std::vector<core::ValueId> leaving;
};

struct BlockChain {
  std::vector<ChainBlock> blocks;
  std::vector<std::int32_t> block_of;  ///< block of each node
  /// Whether a value is a resident, by value: it is made in the forward part and stays in memory until its last reader,
  /// because it crosses many blocks, is kept, or cannot be made twice.
  std::vector<std::uint8_t> resident;
  /// Last block to need a value, which is the lowest of the blocks with a reader; -1: the value is kept. By value.
  std::vector<std::int32_t> last_block;
};

/// Cuts the forward part wherever at most one value of more than 0 bytes crosses, residents left out (values with
/// readers more than `longest` forward nodes away, kept values, values of pinned nodes). A backward node belongs to the
/// block of its forward node (Graph::forward); a node without one, to the first block to run backward in which
/// everything it reads is available. Blocks whose backward parts would not run in reverse order are merged, and
/// neighbours are merged until there are at most `most_blocks` (>= 1). O(n log n + m).
///
/// Throws InputError, naming the nodes, if a forward node reads a backward one, or the forward node of a backward node
/// is itself backward; and if there is no backward node.
BlockChain find_block_chain(const core::Graph& graph, std::int32_t longest, std::int32_t most_blocks);

}  // namespace cairn::solvers
