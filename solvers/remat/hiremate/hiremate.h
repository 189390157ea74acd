#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct HirematOptions : SolveOptions {
  std::int32_t most_top = 28;    ///< largest number of items of the top level (M^t)
  std::int32_t most_lower = 20;  ///< largest number of items of a group (M^l)
  std::int32_t alpha_pct = 50;   ///< 100 alpha; alpha is an exponent in the score of a group (PartitionOptions::alpha)
  std::int32_t most_options = 300;  ///< largest total number of options of all groups of one level (N_o)
  /// Number of budgets for the bytes that a group keeps between its passes. For each such budget, two more options with
  /// lower peaks are computed.
  std::int32_t budgets = 8;
  /// How the hierarchy is made:
  /// - 0: several hierarchies, while time is left;
  /// - 1: the hierarchy of H-Partition with these M^t, M^l and alpha;
  /// - 2: groups of M^l consecutive items.
  std::int32_t partition = 0;
  bool others = true;  ///< whether TWRemat and RK-ROTOR are used on every level in addition to H-ILP
  /// Number of threads; 0: one for each core. Under a work limit, the engine gets one thread for each program.
  int threads = 0;
  bool highs = false;  ///< whether HiGHS is used instead of CP-SAT
  /// Whether freed values stay in memory where the budget allows (retain_where_it_fits). This never raises the cost.
  bool retain = true;
};

/// Implements HiRemate (Gusak et al. 2025). H-Partition divides the graph into a hierarchy of groups of forward nodes
/// with their backward nodes. The levels are solved from the lowest up. On each level, three methods find schedules of
/// each group for several budgets: an integer linear program (H-ILP), TWRemat and RK-ROTOR. These schedules are the
/// options from which the level above chooses. On the top level, H-ILP solves for the given budget. Identical groups
/// are solved once, and independent groups are solved in parallel. In a graph without backward nodes, a group is just a
/// set of nodes. Without a budget, finds the least peak that the method reaches.
///
/// Proves no bounds of its own. Throws InputError if the backward marks are inconsistent. Throws InputError if the
/// engine is missing.
Solution hiremate(const core::Graph& graph, const HirematOptions& options);

}  // namespace cairn::solvers
