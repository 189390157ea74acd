#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"

/// A training graph as a chain of blocks that run forward in one order, backward in the other.
namespace cairn::solvers {

struct ChainBlock {
  std::vector<core::NodeId> forward, backward;  ///< in the input order
  /// Values made in this block or before it and read by forward nodes of later ones, residents left out: the checkpoint
  /// of the next block.
  std::vector<core::ValueId> leaving;
};

struct BlockChain {
  std::vector<ChainBlock> blocks;
  std::vector<std::int32_t> block_of;  ///< by node
  /// By value: whether it is made in the forward part and stays in memory until its last reader, because it crosses
  /// many blocks, is kept, or cannot be made twice.
  std::vector<std::uint8_t> resident;
  /// By value: the last block to need it, which is the lowest of those with a reader; -1: kept.
  std::vector<std::int32_t> last_block;
};

/// Cuts the forward part wherever at most one value of more than 0 bytes crosses, residents left out: values with
/// readers more than `longest` forward nodes away, kept ones, those of pinned nodes. A backward node belongs to the
/// block of its forward node (Graph::forward); one without, to the first block to run backward in which everything it
/// reads is available. Blocks whose backward parts would not run in reverse order are merged, and neighbours until
/// there are at most `most_blocks` (>= 1). O(n log n + m).
///
/// Throws InputError, naming the nodes, if a forward node reads a backward one, or the forward node of a backward node
/// is itself backward; and if there is no backward node.
BlockChain find_block_chain(const core::Graph& graph, std::int32_t longest, std::int32_t most_blocks);

}  // namespace cairn::solvers
