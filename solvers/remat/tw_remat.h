#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct TwRematOptions : SolveOptions {
  /// Recursion stops at tree decompositions of fewer than k bags: 1 recurses to the end (least memory), n gives
  /// NoRemat. 0, the default, searches k for the least cost within the budget.
  /// A k that is given yields that schedule, or none where it grew too long.
  std::int64_t k = 0;
  /// Within a budget, values that Algorithm 1 frees stay in memory where that fits (retain_where_it_fits), and their
  /// recomputation goes: never dearer. False gives the paper's schedules.
  bool retain = true;
};

/// TWRemat(k): Algorithm 1 of Kumar et al. on a min-fill tree decomposition (Lemma 1), with balanced separators (Lemma
/// 3) found once for each component. Only what a call's outputs need is scheduled, and recomputations that nothing
/// reads are dropped, so a schedule is never longer than the paper's. Length O(w n^(1 + log(w + 2))) for width w; a
/// schedule that grows beyond a fixed multiple of n is given up and counts as too costly.
Solution tw_remat(const core::Graph& graph, const TwRematOptions& options);

}  // namespace cairn::solvers
