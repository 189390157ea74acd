#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/sim/canonical_batch.h"
#include "cairn/sim/schedule_batch.h"
#include "cairn/sim/simulator.h"

namespace cairn::sim {

/// Collects, among candidate schedules of a graph, those whose internal profile is not dominated by another candidate's
/// (core/dominance.h). If the graph is a part of a larger one, only these schedules are worth keeping, whatever runs
/// beside it. The internal profile of a schedule is its memory from after the first step to the end of the last, with
/// the last step's outputs still in memory (Definition 5.2 of Jin et al., for any graph and with recomputation). Of
/// candidates that dominate each other, the first one stays.
class Undominated {
 public:
  /// Most candidates that are kept, because finding more takes the square of their number.
  static constexpr std::int64_t kMost = 10'000;

  /// The graph must outlive this object.
  explicit Undominated(const core::Graph& graph) : graph_(&graph) {}

  /// Adds the valid candidates of a batch. numbers[c] is the number of candidate c; numbers must rise from call to
  /// call. Takes 16 bytes of memory per step for the profiles of the batch. O(steps) and the comparisons of
  /// DominanceSet::non_dominated.
  void add(Simulator& simulator, const ScheduleBatch& batch, std::span<const std::int64_t> numbers);

  std::int64_t candidates() const { return candidates_; }                ///< number of valid candidates that were added
  const std::vector<std::int64_t>& numbers() const { return numbers_; }  ///< numbers of the kept ones, ascending
  const CanonicalBatch& profiles() const { return profiles_; }           ///< profiles of the kept ones, in this order
  /// Whether numbers() and profiles() hold all candidates that stay. False once there were more than kMost of them;
  /// kMost of them were kept then, and which ones depends on how the candidates came in batches.
  bool complete() const { return complete_; }

 private:
  const core::Graph* graph_;
  std::int64_t candidates_ = 0;
  std::vector<std::int64_t> numbers_;
  CanonicalBatch profiles_;
  bool complete_ = true;
};

}  // namespace cairn::sim
