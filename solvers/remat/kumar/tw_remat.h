#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct TwRematOptions : SolveOptions {
  /// Number of bags below which the recursion stops. 1 recurses to the end (least memory), n gives NoRemat. 0, the
  /// default, searches for the least cost within the budget, or for the least peak.
  std::int64_t k = 0;
  /// Whether to run a clean-up pass: values that Algorithm 1 frees stay in memory where they fit
  /// (retain_where_it_fits), and their recomputation is dropped. The result is never dearer, and its peak is not above
  /// the budget or, without a budget, above the peak before the clean-up. Skipped for more than 4 million steps. False
  /// gives Algorithm 1's schedules.
  bool retain = true;
  /// Most steps of a schedule that is written out. 0: 64 a node, and 4 million for a given k.
  std::int64_t most_steps = 0;
};

/// Makes the options of a call, with the solver's own ones (registry.h) from SolveOptions::own.
TwRematOptions tw_options(const SolveOptions& options);

/// Finds a schedule by TWRemat(k), Algorithm 1 of Kumar et al., on a min-fill tree decomposition (Lemma 1), or on the
/// given one (SolveOptions::decomposition), with balanced separators (Lemma 3) found once for each component. For k = 1
/// and width w the schedule has length O(w n^(1 + log(w + 2))) and peak O((M_in + w M_max) log n) (Theorem 5). It is
/// never longer than that of Algorithm 1 as printed (tw_program.h).
///
/// The search goes beyond k: recursion also ends where the nodes that a call needs fit into the memory that its callers
/// leave. Throws InputError if a given k yields more than most_steps, before it starts; the message says how many and
/// which k stays within the limit.
Solution tw_remat(const core::Graph& graph, const TwRematOptions& options);

/// Measures of TWRemat(k) for one k, without clean-up.
struct TwPoint {
  std::int64_t k = 0;
  std::int64_t length = 0;          ///< number of steps of Algorithm 1; 2^60 stands for more
  std::int64_t steps = 0;           ///< number of steps whose result is read; 0: too long to compute
  std::int64_t peak = 0, cost = 0;  ///< peak in bytes and cost in the graph's unit, of the steps whose result is read
  /// Steps and cost after the clean-up pass at that peak; 0: not run.
  std::int64_t retained_steps = 0, retained_cost = 0;
};

/// Computes the whole curve of length over memory, from NoRemat (k = n) to TWRemat(1), by descending k: at most
/// `most_points` of the different k, evenly on a logarithmic scale. Each point takes O(1) bit a step; schedules longer
/// than options.most_steps (0: 50 million) only get a length. Ends early at the limit; otherwise the last k is 1.
std::vector<TwPoint> tw_sweep(const core::Graph& graph, const TwRematOptions& options, std::int32_t most_points);

/// Computes TWRemat(options.k), k > 0, of any length: passes its steps to `write` in order, some thousands at a time,
/// and stores only a bit for each. Throws InputError if there are more than 2^36, InterruptedError if the limit ends
/// it.
TwPoint stream_tw_remat(const core::Graph& graph, const TwRematOptions& options,
                        const std::function<void(std::span<const core::NodeId>)>& write);

}  // namespace cairn::solvers
