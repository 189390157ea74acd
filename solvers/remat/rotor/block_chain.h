#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"

/// Divides a training graph into a chain of blocks. Each block has a forward part and a backward part. The forward
/// parts run in the order of the chain, and afterwards the backward parts run in reverse order.
namespace cairn::solvers {

struct ChainBlock {
  /// Nodes of the two parts of the block, each in the input order.
  std::vector<core::NodeId> forward, backward;
  /// Values that must be passed on from this block to the next one. They are made in this block or an earlier one, a
  /// forward node of a later block reads them, and they are not residents (see BlockChain::resident). Together they are
  /// the checkpoint of the next block: with it and the residents, the next block can run forward.
  std::vector<core::ValueId> leaving;
};

struct BlockChain {
  std::vector<ChainBlock> blocks;
  std::vector<std::int32_t> block_of;  ///< indexed by node
  /// Whether each value is a resident; indexed by value. A resident is made in the forward part and is never
  /// recomputed, but stays in memory until its last reader has run. A value is a resident in three cases: it is kept or
  /// its producer is pinned; a forward reader is far from the producer; the backward part of some block reads the
  /// value, and this block neither makes the value nor has it in its checkpoint.
  std::vector<std::uint8_t> resident;
  /// The block that needs each value last; indexed by value. Backward parts run in reverse order, so this is the block
  /// of lowest number that contains a reader. -1: the value is kept at the end.
  std::vector<std::int32_t> last_block;
};

/// Divides the graph as follows:
/// - The forward part is divided between two consecutive nodes if at most one value of more than 0 bytes crosses this
///   boundary. A value crosses the boundary if its producer runs before and one of its forward readers runs after. Kept
///   values, values of pinned nodes, and values with a reader more than `longest` forward nodes after the producer do
///   not count, because they become residents.
/// - If this gives more than `most_blocks` (>= 1) blocks, only some of the boundaries are used. They are spread over
///   the graph. Among neighbouring boundaries, the one that the fewest bytes cross is used.
/// - A backward node belongs to the block of its forward node (Graph::forward). If it has no forward node, it belongs
///   to one of the blocks in which all of its inputs are available: the block of highest number, because that block
///   runs backward first.
/// - If a backward node reads a value that a block of lower number makes in its backward part, all blocks from that
///   block to the node's own block are merged. Otherwise, the backward parts could not run in reverse order.
///
/// O(n log n + m) for n nodes and m inputs. Throws InputError if there is no backward node. Throws InputError that
/// names the nodes if a forward node reads a backward node, or if Graph::forward of a backward node is itself a
/// backward node.
BlockChain find_block_chain(const core::Graph& graph, std::int32_t longest, std::int32_t most_blocks);

/// Returns one or two divisions of the graph into a chain. In both, some values are residents: they are never
/// recomputed, and do not prevent the graph from being divided where they cross. In the second chain, values that cross
/// a large part of the graph are residents as well. The second chain is left out unless it has at least 9/8 times as
/// many blocks as the first. Throws InputError as find_block_chain() does, and if the graph cannot be divided.
std::vector<BlockChain> find_block_chains(const core::Graph& graph, std::int32_t most_blocks);

}  // namespace cairn::solvers
