#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct RotorOptions : SolveOptions {
  /// Number of levels in which the dynamic program counts memory. More levels round less, and take more time and memory
  /// in proportion. 0: as many levels as a few seconds and memory_bytes allow.
  std::int64_t slots = 0;
  /// Largest number of stages in a chain. If there are more blocks, neighbouring blocks are merged. The time grows with
  /// the cube of this number.
  std::int64_t blocks = 200;
  /// Whether to remove recomputations afterwards if the budget has room to keep the value in memory
  /// (retain_where_it_fits). This never raises the cost. False gives persistent schedules.
  bool retain = true;
};

/// Finds the cheapest persistent schedule (chain_schedule.h) of a chain of blocks, by the dynamic program of Beaumont
/// et al. (2019, arXiv 1911.13214). As in Rockmate (Zhao et al. 2023), there are several ways to run a block, from
/// saving all values that its backward part reads to recomputing nearly all of them. The blocks are found in any
/// training graph by find_block_chain(). Without a budget, finds the least peak that such schedules reach, then the
/// least time at that peak.
///
/// The schedule is optimal among persistent schedules if each block is one forward node with its backward part and
/// memory has few levels. Nothing is proved about other schedules. O(L^3 slots) for L blocks.
///
/// Throws InputError if the graph has no backward nodes, if backward marks contradict the edges, or if the forward part
/// cannot be cut into blocks.
Solution rotor(const core::Graph& graph, const RotorOptions& options);

}  // namespace cairn::solvers
