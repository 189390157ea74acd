#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct TwRematOptions : SolveOptions {
  /// The k of TWRemat(k), whose recursion stops at parts of the tree decomposition with fewer than k bags. With k = 1,
  /// the recursion goes as deep as possible, which takes the least memory. With k = n, for n nodes, every node runs
  /// once. 0 (default): the solver searches for the least cost within the budget or, without a budget, for the least
  /// peak.
  std::int64_t k = 0;
  /// Whether to run a clean-up pass (retain_where_it_fits). It keeps values in memory that Algorithm 1 would free,
  /// where they fit, and removes their recomputations. The cost never rises. The peak stays within the budget or,
  /// without a budget, does not rise. The pass is skipped for schedules of more than 4 million steps.
  bool retain = true;
  /// Largest number of steps of a schedule that is written out. 0: 4 million if k is given, otherwise 64 n + 4096 for n
  /// nodes.
  std::int64_t most_steps = 0;
};

/// Finds a schedule by TWRemat(k), Algorithm 1 of Kumar et al. 2019. Uses the given tree decomposition
/// (SolveOptions::decomposition) or one found by min-fill (Lemma 1). The algorithm divides the graph by balanced
/// separators (Lemma 3), which are found once for each component that the recursion reaches. For k = 1, width w and n
/// nodes the schedule has length O(w n^(1 + log(w + 2))) and peak O((M_in + w M_max) log n) (Theorem 5). Here M_max is
/// the size of the largest value, and M_in is the largest total size of the inputs of one node. The schedule is never
/// longer than the schedule of Algorithm 1 as printed (see tw_program.h for the reason).
///
/// If k is not given, the search tries several k. It also tries schedules in which the recursion ends wherever the
/// nodes of a call fit into the memory that its callers leave (TwProgram::steps_within). Throws InputError if a given k
/// leads to more than most_steps steps. The message states the length and a k that stays within most_steps.
Solution tw_remat(const core::Graph& graph, const TwRematOptions& options);

/// Holds measures of the schedule of TWRemat(k) for one k, before the clean-up pass unless stated otherwise.
struct TwPoint {
  std::int64_t k = 0;
  std::int64_t length = 0;  ///< number of steps of Algorithm 1; 2^60 stands for 2^60 or more
  std::int64_t steps = 0;   ///< number of steps whose result is read; 0: the schedule was too long to compute
  /// Peak in bytes and cost in the graph's unit, counting only the steps whose result is read.
  std::int64_t peak = 0, cost = 0;
  /// Number of steps and cost after the clean-up pass, which may use as much memory as `peak`. 0: the pass was not run.
  std::int64_t retained_steps = 0, retained_cost = 0;
};

/// Computes the curve of length over memory, from k = n (every node runs once) to k = 1, by descending k. Uses at most
/// `most_points` different k, evenly spaced on a logarithmic scale. Computing a point takes one bit of memory for each
/// step of its schedule. Points of more than options.most_steps steps (0: 50 million) have only a length. If the limit
/// ends the computation, the last points are missing.
std::vector<TwPoint> tw_sweep(const core::Graph& graph, const TwRematOptions& options, std::int32_t most_points);

/// Computes the schedule of TWRemat(options.k), k > 0, of almost any length. Passes the steps to `write` in order, a
/// few thousand at a time, and stores only one bit for each step. Throws InputError if there are more than 2^36 steps.
/// Throws InterruptedError if the limit ends the computation.
TwPoint stream_tw_remat(const core::Graph& graph, const TwRematOptions& options,
                        const std::function<void(std::span<const core::NodeId>)>& write);

}  // namespace cairn::solvers
