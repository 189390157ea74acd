#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/registry.h"

namespace cairn::fit {

/// Holds the largest batch (number of samples in one training step) of a model that fits into a budget, and the batches
/// that were tried.
struct LargestBatch {
  std::int64_t batch = 0;     ///< largest batch known to fit; 0: no batch is known to fit
  std::int64_t as_it_is = 0;  ///< largest batch whose baseline, which recomputes nothing, fits
  std::int64_t refused = 0;   ///< smallest batch that was tried and did not fit; 0: none
  /// Whether it is proved that no batch of `refused` or more samples fits. The proof assumes that a larger batch needs
  /// at least as much memory.
  bool refusal_proved = false;
  std::vector<std::int64_t> tried;
  bool timed_out = false;
};

struct LargestBatchOptions {
  /// Returns the budget of a graph in bytes, which limits the height of plans. 0 or less means that the graph cannot
  /// fit.
  std::function<std::int64_t(const core::Graph&)> budget;
  /// Returns the largest cost allowed for a schedule of the problem's graph. Empty: there is no limit.
  std::function<std::int64_t(const Problem&)> max_cost;
  std::int64_t alignment = 0;      ///< alignment of plans in bytes; 0: default_alignment() of the graph
  std::int64_t overlap_steps = 0;  ///< steps for which a finished buffer stays reserved (solvers::PlanOptions)
  /// Options of the solver; budget and max_cost are not read. The limit is for all batches together; each batch gets a
  /// part of it.
  solvers::SolveOptions search;
  std::function<void(std::int64_t batch)> progress;  ///< called before each batch is tried
};

/// Finds the largest batch that fits. Doubles the batch until it does not fit or exceeds 2^20. Afterwards repeatedly
/// tries the middle between the largest batch that fits and the smallest batch that does not fit. The whole search
/// takes O(log batch) calls of find_least_budget(). Most of these calls end early, because a schedule fits or a lower
/// bound proves that none does. `build` makes the graph of a batch; exceptions that it throws are passed on.
LargestBatch find_largest_batch(const std::function<core::Graph(std::int64_t batch)>& build,
                                const solvers::SolverInfo& solver, const LargestBatchOptions& options);

}  // namespace cairn::fit
