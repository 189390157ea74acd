#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/sim/canonical_batch.h"
#include "cairn/sim/schedule_batch.h"
#include "cairn/sim/simulator.h"

namespace cairn::sim {

/// Collects the candidate schedules of a graph that no other candidate dominates (core/dominance.h). Schedules are
/// compared by their internal profiles: the memory from after the first step to the end of the last step, with the last
/// step's outputs still in memory. This is Definition 5.2 of Jin et al., extended to every graph and to recomputation.
/// The graph can be a part of a larger graph. A schedule of the larger graph then contains a schedule s of the part. If
/// s is replaced by a schedule that dominates s, the peak of the larger schedule never rises, whatever other nodes run
/// between the steps of the part. If several candidates dominate each other, the first of these is kept.
class Undominated {
 public:
  /// Largest number of candidates that are kept. The number is limited because the time grows with its square.
  static constexpr std::int64_t kMost = 10'000;

  /// Refers to `graph`, which must outlive this object.
  explicit Undominated(const core::Graph& graph) : graph_(&graph) {}

  /// Adds the valid candidates of a batch. numbers[c] identifies candidate c, for example by its index in a generator's
  /// sequence. The numbers must ascend, within a call and from call to call. Takes at most 16 bytes of memory per step
  /// of the batch, and 32 with transfers. Takes the time of Simulator::internal_profiles() and of
  /// DominanceSet::non_dominated().
  void add(Simulator& simulator, const ScheduleBatch& batch, std::span<const std::int64_t> numbers);

  std::int64_t candidates() const { return candidates_; }                ///< number of valid candidates that were added
  const std::vector<std::int64_t>& numbers() const { return numbers_; }  ///< numbers of the kept candidates, ascending
  const CanonicalBatch& profiles() const {
    return profiles_;
  }  ///< canonical profiles of the kept candidates, in the order of numbers()
  /// Returns whether numbers() and profiles() hold all candidates that no other candidate dominates. The answer is
  /// false once there have been more than kMost such candidates. Then kMost of them are kept, and the division of the
  /// candidates into batches decides which.
  bool complete() const { return complete_; }

 private:
  const core::Graph* graph_;
  std::int64_t candidates_ = 0;
  std::vector<std::int64_t> numbers_;
  CanonicalBatch profiles_;
  bool complete_ = true;
};

}  // namespace cairn::sim
