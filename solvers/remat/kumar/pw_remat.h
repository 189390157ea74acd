#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct PwRematOptions : SolveOptions {
  /// The k of PWRemat(k), whose recursion stops at fewer than k bags of the path decomposition. With k = 1, the
  /// recursion goes as deep as possible, which takes the least memory. With k = n, for n nodes, every node runs once. 0
  /// (default): the solver searches for the k of least cost within the budget.
  std::int64_t k = 0;
  /// Topological order on which the algorithm recurses:
  /// - 1: the order of the spine, a path through all nodes that Algorithm 2 adds to the graph. The theorem's bounds
  ///   hold for this order.
  /// - 2: the input order, without a spine. This is often better, but no bounds are proved.
  /// - 0: tries both orders. They are equal if the graph has a Hamiltonian path.
  std::int64_t order = 0;
  /// Whether values that Algorithm 3 frees stay in memory where the budget allows (retain_where_it_fits). False gives
  /// the schedules of Algorithm 3.
  bool retain = true;
};

/// Largest number of steps of a schedule for a given k. If pw_remat() searches for k, the largest number is 64 n + 4096
/// for n nodes.
inline constexpr std::int64_t kMostPwRematSteps = 100'000'000;

/// Computes schedules by PWRemat: Algorithm 3 of Kumar et al. 2019 on a path decomposition found by vertex separation.
/// Let b be the number of bags, and p the largest number of nodes in a bag after the spine was added. A schedule has
/// length O(p! b log^(p-2) b). Its peak is O(p M_max log^2 b + M_in log b) plus the bytes of kept values. Here M_max is
/// the size of the largest value, and M_in is the largest total size of the inputs of one node. docs/treewidth.md has
/// the constants.
///
/// Each k is tried with two ways to choose the middle bag of the recursion. One takes the bag in the middle (X_{b/2}),
/// for which the bounds hold. The other takes a nearby bag of fewer bytes. If a given k > 0 leads to more than
/// kMostPwRematSteps steps, throws InputError that states the length and, if one was found, another k whose schedule is
/// short enough.
Solution pw_remat(const core::Graph& graph, const PwRematOptions& options);

}  // namespace cairn::solvers
