#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/registry.h"

namespace cairn::fit {

/// The largest batch of a model that fits, with the batches tried to find it.
struct LargestBatch {
  std::int64_t batch = 0;     ///< largest batch that fits; 0: not even batch 1 is known to fit
  std::int64_t as_it_is = 0;  ///< largest batch that fits in the baseline order, without recomputation
  std::int64_t refused = 0;   ///< smallest batch that was tried and did not fit; 0: none
  /// Whether a proof excludes batches of `refused` and more, assuming that a larger batch needs no less memory.
  bool refusal_proved = false;
  std::vector<std::int64_t> tried;
  bool timed_out = false;
};

struct LargestBatchOptions {
  /// Computes the budget of a graph, in bytes of planned memory; 0 or less: the graph cannot fit.
  std::function<std::int64_t(const core::Graph&)> budget;
  /// Computes the most that a training step may cost; empty: no limit.
  std::function<std::int64_t(const Problem&)> max_cost;
  std::int64_t alignment = 0;  ///< alignment of plans in bytes; 0: default_alignment
  /// Options of the search for one batch; its limit is for all batches together, each of which gets a part.
  LeastBudgetOptions least;
  std::int64_t most = 1 << 20;  ///< largest batch to try
  std::function<void(std::int64_t batch)> progress;
};

/// Doubles the batch until it does not fit, then halves the gap: O(log batch) searches for the least budget, most of
/// which end at the first schedule that fits, or by the lower bound. `build` makes the graph of a batch; its exceptions
/// are passed on.
LargestBatch find_largest_batch(const std::function<core::Graph(std::int64_t batch)>& build,
                                const solvers::SolverInfo& solver, const LargestBatchOptions& options);

}  // namespace cairn::fit
