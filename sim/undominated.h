#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/sim/canonical_batch.h"
#include "cairn/sim/schedule_batch.h"
#include "cairn/sim/simulator.h"

namespace cairn::sim {

/// The candidates whose internal profiles no other candidate's dominates (core/dominance.h): those that are worth
/// keeping where the graph is a part of a larger one, whatever runs beside it. The internal profile of a schedule goes
/// from after its first step to the end of its last, with that step's outputs still in memory (Definition 5.2 of
/// Jin et al., for any graph and with recomputation). Of candidates that dominate each other the first one stays.
class Undominated {
 public:
  /// Candidates that are kept at most: finding more takes the square of their number.
  static constexpr std::int64_t kMost = 10'000;

  /// The graph must outlive it.
  explicit Undominated(const core::Graph& graph) : graph_(&graph) {}

  /// Adds the valid candidates of a batch; numbers[c] is candidate c's, and they rise from call to call. Memory for the
  /// profiles of the batch is taken: 16 bytes a step. O(steps) and the comparisons of DominanceSet::non_dominated.
  void add(Simulator& simulator, const ScheduleBatch& batch, std::span<const std::int64_t> numbers);

  std::int64_t candidates() const { return candidates_; }                ///< valid ones that were added
  const std::vector<std::int64_t>& numbers() const { return numbers_; }  ///< of those that stay, rising
  const CanonicalBatch& profiles() const { return profiles_; }           ///< of these, in their order
  /// Whether all are there: false once there were more than kMost, of which the first ones stayed.
  bool complete() const { return complete_; }

 private:
  const core::Graph* graph_;
  std::int64_t candidates_ = 0;
  std::vector<std::int64_t> numbers_;
  CanonicalBatch profiles_;
  bool complete_ = true;
};

}  // namespace cairn::sim
