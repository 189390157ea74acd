#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct PwRematOptions : SolveOptions {
  /// Recursion stops at path decompositions of fewer than k bags: 1 recurses to the end (least memory), n runs every
  /// node once. 0, the default, searches k for the least cost within the budget.
  std::int64_t k = 0;
  /// The topological order that the recursion goes by: 1 is the spine's (Algorithm 2), which the bounds are about; 2 is
  /// the input order, on bags that no spine was added to: often better, never proved. 0 tries both. They are the same
  /// where the graph has a Hamiltonian path.
  std::int64_t order = 0;
  /// Within a budget, values that Algorithm 3 frees stay in memory where that fits (retain_where_it_fits). False gives
  /// Algorithm 3's schedules.
  bool retain = true;
};

/// The longest schedule that pw_remat writes out: steps for a k that is given; a search of k stops at 64 n + 4096.
inline constexpr std::int64_t kMostPwRematSteps = 100'000'000;

/// PWRemat: Algorithm 3 of Kumar et al. 2019 on a path decomposition found by vertex separation. For bags of at most p
/// nodes after the spine was added, b of them: length O(p! b log^(p-2) b), peak O(p M_max log^2 b + M_in log b) and
/// what is kept; docs/treewidth.md has the constants. Each k is tried with X_{b/2} in the middle, which the bounds are
/// about, and with a lighter bag nearby. Lengths are known before schedules are written out: throws InputError that
/// says them, and a k that is short enough, where k > 0 gives more than kMostPwRematSteps.
Solution pw_remat(const core::Graph& graph, const PwRematOptions& options);

}  // namespace cairn::solvers
