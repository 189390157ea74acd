#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct RotorOptions : SolveOptions {
  /// Memory of the dynamic program is counted in so many steps. More: finer, slower and larger in proportion; 0: as
  /// many as a few seconds and memory_bytes allow.
  std::int64_t slots = 0;
  /// Stages of a chain at most: beyond, neighbouring blocks become one. Time grows with its cube.
  std::int64_t blocks = 200;
  /// Recomputation goes where the budget has room for the value after all (retain_where_it_fits): never dearer. False
  /// gives persistent schedules.
  bool retain = true;
};

/// The cheapest persistent schedule of a chain of blocks, by the dynamic program of Beaumont et al. (2019, arXiv
/// 1911.13214) with several ways to run a block, as in Rockmate (Zhao et al. 2023): from saving all that its backward
/// part reads to recomputing nearly all of it. Blocks are found in any training graph: they end where one value crosses
/// from forward node to forward node, beside some that are held in memory from their making to their last use.
///
/// Optimal among persistent schedules where each block is one forward node and its backward part and memory has few
/// levels; it proves nothing about others. Without a budget: the least peak that such schedules reach, then the least
/// time. O(L^3 slots) for L blocks.
///
/// Throws InputError on a graph without backward nodes, with backward marks that contradict its edges, or whose forward
/// part cannot be cut.
Solution rotor(const core::Graph& graph, const RotorOptions& options);

}  // namespace cairn::solvers
