#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct HirematOptions : SolveOptions {
  std::int32_t most_top = 16;      ///< M^t: items of the top level
  std::int32_t most_lower = 8;     ///< M^l: items of a group
  std::int32_t alpha_pct = 50;     ///< 100 alpha: the exponent in a group's score
  std::int32_t most_options = 60;  ///< N_o: options that the parts of one level have together
  std::int32_t budgets = 8;        ///< budgets for what a group saves; for each of them, its peak is lowered twice
  int threads = 0;                 ///< 0: one a core
  bool highs = false;              ///< HiGHS instead of CP-SAT
  bool retain = true;              ///< what the schedule frees stays where the budget allows (retain_where_it_fits)
};

/// HiRemate (Gusak et al. 2025): H-Partition cuts the graph into a hierarchy of groups of forward nodes with their
/// backward nodes; from the bottom up, H-ILP finds schedules of each group for several budgets, the options of the
/// level above; at the top, one for the budget. Identical groups are solved once, independent ones in parallel. Graphs
/// without backward nodes: groups of single nodes. Throws InputError where the backward marks are inconsistent or the
/// engine is missing.
Solution hiremate(const core::Graph& graph, const HirematOptions& options);

}  // namespace cairn::solvers
