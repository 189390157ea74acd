#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct HirematOptions : SolveOptions {
  std::int32_t most_top = 28;       ///< M^t: items of the top level
  std::int32_t most_lower = 20;     ///< M^l: items of a group
  std::int32_t alpha_pct = 50;      ///< 100 alpha: the exponent in a group's score
  std::int32_t most_options = 300;  ///< N_o: options of all parts of one level together
  std::int32_t budgets = 8;         ///< budgets for the bytes a group saves; for each, its peak is lowered twice
  /// 0: several hierarchies while time is left; 1: H-Partition's with these M^t, M^l and alpha; 2: runs of M^l nodes.
  std::int32_t partition = 0;
  bool others = true;  ///< use TWRemat and RK-ROTOR beside H-ILP, on every level
  int threads = 0;     ///< 0: one a core; under a work limit the engine gets one per program
  bool highs = false;  ///< HiGHS instead of CP-SAT
  bool retain = true;  ///< keep freed values where the budget allows (retain_where_it_fits): never dearer
};

/// HiRemate (Gusak et al. 2025): H-Partition cuts the graph into a hierarchy of groups of forward nodes with their
/// backward nodes. From the bottom up, H-ILP, TWRemat and RK-ROTOR find schedules of each group for several budgets,
/// which are the options of the level above; at the top, H-ILP solves for the budget. Identical groups are solved once,
/// independent ones in parallel. In graphs without backward nodes, groups consist of single nodes. Without a budget:
/// the least peak that the method reaches.
///
/// Proves nothing beyond what every solver knows. Throws InputError if the backward marks are inconsistent or the
/// engine is missing.
Solution hiremate(const core::Graph& graph, const HirematOptions& options);

}  // namespace cairn::solvers
