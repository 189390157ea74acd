#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct RotorOptions : SolveOptions {
  /// Number of levels in which the dynamic program counts memory (see ChainTable). With more levels, byte counts are
  /// rounded less, but time and memory grow in proportion. 0: as many levels as a few seconds and memory_bytes allow.
  std::int64_t slots = 0;
  /// Largest number of blocks in a chain. If the graph has more, some neighbouring blocks are merged. The time grows
  /// with the cube of this number.
  std::int64_t blocks = 200;
  /// Whether a clean-up pass (retain_where_it_fits) removes recomputations where the budget has room to keep the value
  /// in memory instead. This never raises the cost. Without the pass, all schedules are persistent (see rotor()).
  bool retain = true;
};

/// Finds the cheapest persistent schedule (dynamic_program.h) of a chain of blocks, by the dynamic program of Beaumont
/// et al. (2019, arXiv 1911.13214). As in Rockmate (Zhao et al. 2023), there are several ways to run a block. They
/// range from saving all values that the block's backward part reads to recomputing nearly all of them.
/// find_block_chain() divides a training graph into blocks. Without a budget, finds the least peak that such schedules
/// reach, and the least time at that peak.
///
/// The schedule is optimal among persistent schedules if each block is one forward node with its backward part and byte
/// counts are not rounded. Nothing is proved about other schedules. Takes O(b^3 s) time for b blocks and s levels of
/// memory (RotorOptions::slots).
///
/// Throws InputError if the graph has no backward nodes, if backward marks contradict the edges, or if the forward part
/// cannot be divided into blocks.
Solution rotor(const core::Graph& graph, const RotorOptions& options);

}  // namespace cairn::solvers
