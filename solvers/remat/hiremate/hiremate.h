#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Holds the options of hiremate(). The comment on hiremate() explains layers, groups, levels and options of groups.
struct HirematOptions : SolveOptions {
  std::int32_t most_top = 28;    ///< largest number of groups and layers of the top level (M^t)
  std::int32_t most_lower = 20;  ///< largest number of members of a group (M^l)
  /// 100 * alpha, where alpha is an exponent in the score of a group (PartitionOptions::alpha)
  std::int32_t alpha_pct = 50;
  std::int32_t most_options = 300;  ///< largest number of options of all groups of a level together (N_o)
  /// Number of budgets for the bytes that a group keeps in memory between its forward and its backward pass. For each
  /// of these budgets, up to three options are computed, each with a lower peak than the one before.
  std::int32_t budgets = 8;
  /// How the hierarchy is made:
  /// - 0: tries several hierarchies, one after another, while time is left.
  /// - 1: by H-Partition with these M^t, M^l and alpha.
  /// - 2: from groups of at most M^l consecutive layers.
  std::int32_t partition = 0;
  /// whether TWRemat and RK-ROTOR (rotor.h) also find options for every group and schedules of the whole graph
  bool others = true;
  /// Number of threads; 0: one for each core. Under a work limit, the engine (CP-SAT or HiGHS) solves each program on
  /// one thread.
  int threads = 0;
  bool highs = false;  ///< whether HiGHS is used instead of CP-SAT
  /// Whether freed values stay in memory where the budget has room (retain_where_it_fits). This never raises the cost.
  bool retain = true;
};

/// Implements HiRemate (Gusak et al. 2025). The graph is divided into layers, each of which has one forward node with
/// its backward nodes (layers.h). H-Partition forms groups of layers, groups of these groups, and so on. Each group has
/// a few options, which are ways to run it. They are found on the lowest level first, and then on each higher level,
/// for several budgets. An integer linear program (H-ILP) makes options of a group by choosing among the options of its
/// members. TWRemat and RK-ROTOR make further options. On the top level, H-ILP makes schedules of the whole graph for
/// the given budget.
///
/// Equal groups are solved once, and independent groups are solved in parallel. In a graph without backward nodes, a
/// group is just a set of nodes. Without a budget, finds the least peak that the method reaches.
///
/// Proves no bounds of its own. Throws InputError if the marks that say which nodes are backward nodes are
/// inconsistent, or if the engine is missing.
Solution hiremate(const core::Graph& graph, const HirematOptions& options);

}  // namespace cairn::solvers
