#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct TwRematOptions : SolveOptions {
  /// The recursion stops at fewer than k bags. With k = 1 it goes to the end (least memory); with k = n every node runs
  /// once. 0 (default): the solver searches for the least cost within the budget or, without a budget, for the least
  /// peak.
  std::int64_t k = 0;
  /// Whether to run a clean-up pass. The pass keeps values that Algorithm 1 frees in memory if they fit, and removes
  /// their recomputations (retain_where_it_fits). This never raises the cost. The peak stays within the budget or,
  /// without a budget, does not rise. The pass is skipped for more than 4 million steps. False gives the schedules of
  /// Algorithm 1.
  bool retain = true;
  /// Largest number of steps of a schedule that is written out. 0: 4 million if k is given, otherwise 64 for each node.
  std::int64_t most_steps = 0;
};

/// Returns TwRematOptions made of `options`. The solver's own options (registry.h) are read from SolveOptions::own.
TwRematOptions tw_options(const SolveOptions& options);

/// Finds a schedule by TWRemat(k), Algorithm 1 of Kumar et al. Uses the given tree decomposition
/// (SolveOptions::decomposition) or one found by min-fill (Lemma 1). Balanced separators (Lemma 3) are found once for
/// each component. For k = 1 and width w the schedule has length O(w n^(1 + log(w + 2))) and peak O((M_in + w M_max)
/// log n) (Theorem 5). Here M_max is the size of the largest value, and M_in is the largest total size of the inputs of
/// one node. The schedule is never longer than that of Algorithm 1 as printed (see tw_program.h for the reason).
///
/// If k is not given, the search does not only vary k. It also tries schedules in which the recursion ends where the
/// nodes of a call fit into the memory that its callers leave. Throws InputError if a given k leads to more than
/// most_steps steps. This is known before the schedule is computed. The message states the length and a k that stays
/// within the limit.
Solution tw_remat(const core::Graph& graph, const TwRematOptions& options);

/// Measures of the schedule of TWRemat(k) for one k. They are those without clean-up unless stated otherwise.
struct TwPoint {
  std::int64_t k = 0;
  std::int64_t length = 0;          ///< number of steps of Algorithm 1; 2^60 stands for more
  std::int64_t steps = 0;           ///< number of steps whose result is read; 0: the schedule is too long to compute
  std::int64_t peak = 0, cost = 0;  ///< peak in bytes and cost in the graph's unit, of the steps whose result is read
  /// retained_steps, retained_cost: steps and cost after the clean-up pass, which may use as much memory as the peak
  /// above. 0: the pass was not run.
  std::int64_t retained_steps = 0, retained_cost = 0;
};

/// Computes the curve of length over memory, from k = n (every node runs once) to TWRemat(1), by descending k. Uses at
/// most `most_points` different k, evenly spaced on a logarithmic scale. Each point takes one bit of memory for each
/// step. A schedule longer than options.most_steps (0: 50 million) only gets a length. If the limit ends the
/// computation, the last points are missing; otherwise the last k is 1.
std::vector<TwPoint> tw_sweep(const core::Graph& graph, const TwRematOptions& options, std::int32_t most_points);

/// Computes the schedule of TWRemat(options.k), k > 0, of any length. Passes the steps to `write` in order, a few
/// thousand at a time. Stores only one bit for each step. Throws InputError if there are more than 2^36 steps. Throws
/// InterruptedError if the limit ends the computation.
TwPoint stream_tw_remat(const core::Graph& graph, const TwRematOptions& options,
                        const std::function<void(std::span<const core::NodeId>)>& write);

}  // namespace cairn::solvers
