#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct PwRematOptions : SolveOptions {
  /// Number of bags below which the recursion stops. 1 recurses to the end (least memory), n runs every node once. 0,
  /// the default, searches for the k of least cost within the budget.
  std::int64_t k = 0;
  /// Number of the topological order of the recursion. 1: the spine's (Algorithm 2), which the bounds are about. 2: the
  /// input order, on bags without an added spine: often better, but without a proof. 0: tries both. They are the same
  /// if the graph has a Hamiltonian path.
  std::int64_t order = 0;
  /// Whether values that Algorithm 3 frees are kept in memory where they fit into the budget (retain_where_it_fits).
  /// False gives Algorithm 3's schedules.
  bool retain = true;
};

/// Most steps of a schedule that pw_remat writes out for a given k; a search of k stops at 64 n + 4096.
inline constexpr std::int64_t kMostPwRematSteps = 100'000'000;

/// Computes schedules by PWRemat: Algorithm 3 of Kumar et al. 2019 on a path decomposition found by vertex separation.
/// For b bags of at most p nodes after the spine was added, the length is O(p! b log^(p-2) b) and the peak O(p M_max
/// log^2 b + M_in log b) plus the bytes of kept values; docs/treewidth.md has the constants. Each k is tried with
/// X_{b/2} in the middle, which the bounds are about, and with a lighter bag nearby. Lengths are known before schedules
/// are written out: if k > 0 gives more than kMostPwRematSteps, throws InputError that names the length and a k that is
/// short enough.
Solution pw_remat(const core::Graph& graph, const PwRematOptions& options);

}  // namespace cairn::solvers
