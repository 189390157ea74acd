#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct HirematOptions : SolveOptions {
  std::int32_t most_top = 28;       ///< most items of the top level (M^t)
  std::int32_t most_lower = 20;     ///< most items of a group (M^l)
  std::int32_t alpha_pct = 50;      ///< exponent in a group's score, in percent (100 alpha)
  std::int32_t most_options = 300;  ///< most options of all parts of one level together (N_o)
  /// Number of budgets for the bytes that a group saves; for each, its peak is lowered twice.
  std::int32_t budgets = 8;
  /// 0: several hierarchies while time is left; 1: H-Partition's with these M^t, M^l and alpha; 2: runs of M^l nodes.
  std::int32_t partition = 0;
  bool others = true;  ///< whether TWRemat and RK-ROTOR are used beside H-ILP, on every level
  int threads = 0;     ///< number of threads; 0: one a core; under a work limit the engine gets one per program
  bool highs = false;  ///< whether HiGHS is used instead of CP-SAT
  /// Whether freed values are kept where the budget allows (retain_where_it_fits), which never costs more.
  bool retain = true;
};

/// HiRemate (Gusak et al. 2025): H-Partition cuts the graph into a hierarchy of groups of forward nodes with their
/// backward nodes. From the bottom up, H-ILP, TWRemat and RK-ROTOR find schedules of each group for several budgets,
/// which are the options of the level above; at the top, H-ILP solves for the budget. Identical groups are solved once,
/// independent ones in parallel. In graphs without backward nodes, groups consist of single nodes. Without a budget,
/// finds the least peak that the method reaches.
///
/// Proves no bounds of its own. Throws InputError if the backward marks are inconsistent or the engine is missing.
Solution hiremate(const core::Graph& graph, const HirematOptions& options);

}  // namespace cairn::solvers
