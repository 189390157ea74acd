#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/sim/canonical_batch.h"
#include "cairn/sim/schedule_batch.h"
#include "cairn/sim/simulator.h"

namespace cairn::sim {

/// Collects the candidate schedules of a graph that are not dominated by any other (core/dominance.h). Schedules are
/// compared by their internal profiles: the memory from after the first step to the end of the last step, with the last
/// step's outputs still in memory. This is Definition 5.2 of Jin et al., extended to every graph and to recomputation.
/// The graph can be a part of a larger graph. A schedule of the larger graph then contains a schedule of the part.
/// Replacing the latter by a schedule that dominates it never raises the peak, whatever other nodes run between its
/// steps. If several candidates dominate each other, the first one is kept.
class Undominated {
 public:
  /// Largest number of candidates that are kept. There is a limit because the time grows with the square of this
  /// number.
  static constexpr std::int64_t kMost = 10'000;

  /// Refers to `graph`, which must outlive this object.
  explicit Undominated(const core::Graph& graph) : graph_(&graph) {}

  /// Adds the valid candidates of a batch. numbers[c] identifies candidate c, for example by its index in a generator's
  /// sequence. Numbers must ascend, also from call to call. Takes 16 bytes of memory per step of the batch. Takes
  /// O(steps) time, and the time of DominanceSet::non_dominated.
  void add(Simulator& simulator, const ScheduleBatch& batch, std::span<const std::int64_t> numbers);

  std::int64_t candidates() const { return candidates_; }                ///< number of valid candidates that were added
  const std::vector<std::int64_t>& numbers() const { return numbers_; }  ///< numbers of the kept candidates, ascending
  const CanonicalBatch& profiles() const { return profiles_; }           ///< their profiles, in the same order
  /// Returns whether numbers() and profiles() hold all candidates that are not dominated by any other. This is false
  /// once there have been more than kMost such candidates. In that case, kMost of them are kept; which ones depends on
  /// how the candidates were divided into batches.
  bool complete() const { return complete_; }

 private:
  const core::Graph* graph_;
  std::int64_t candidates_ = 0;
  std::vector<std::int64_t> numbers_;
  CanonicalBatch profiles_;
  bool complete_ = true;
};

}  // namespace cairn::sim
