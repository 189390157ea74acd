#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct RotorOptions : SolveOptions {
  /// Number of levels in which the dynamic program counts memory. More levels are finer, and slower and larger in
  /// proportion; 0: as many as a few seconds and memory_bytes allow.
  std::int64_t slots = 0;
  /// Most stages of a chain: if there are more, neighbouring blocks are merged. Time grows with the cube of the number.
  std::int64_t blocks = 200;
  /// Whether to drop recomputations if the budget has room for the value after all (retain_where_it_fits), which never
  /// costs more. False gives persistent schedules.
  bool retain = true;
};

/// Finds the cheapest persistent schedule of a chain of blocks, by the dynamic program of Beaumont et al. (2019, arXiv
/// 1911.13214) with several ways to run a block, as in Rockmate (Zhao et al. 2023): from saving all that its backward
/// part reads to recomputing nearly all of these values. Blocks are found in any training graph: they end where one
/// value crosses from forward node to forward node, apart from values that stay in memory until their last use.
///
/// Optimal among persistent schedules if each block is one forward node and its backward part and memory has few
/// levels; proves nothing about other schedules. Without a budget, finds the least peak that such schedules reach, then
/// the least time. O(L^3 slots) for L blocks.
///
/// Throws InputError on a graph without backward nodes, with backward marks that contradict its edges, or whose forward
/// part cannot be cut.
Solution rotor(const core::Graph& graph, const RotorOptions& options);

}  // namespace cairn::solvers
