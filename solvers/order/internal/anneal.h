#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/order/internal/step_graph.h"

namespace cairn::solvers {

/// Makes an editable schedule of a graph's steps, for reordering. Occurrence s is step s. O(n + m).
core::EditableSchedule editable_order(const StepGraph& graph);

/// Simulated annealing over topological orders. A move shifts one step. The target is slightly below the lowest peak so
/// far. The energy of an order is the sum, over its positions, of the memory above the target. In addition, the memory
/// at all positions is added with little weight, which keeps memory low where it is below the target. The energy is a
/// sum, not a maximum, so that a move changes it only at the positions that the move affects.
class Annealing {
 public:
  Annealing(const StepGraph& graph, std::span<const StepId> start, std::uint64_t seed);

  /// Starts a run of `work` units from an order. At first the temperature is `hot` times the mean rise of a step; it
  /// falls during the run.
  void start(std::span<const StepId> order, std::int64_t work, double hot);
  /// Continues the run until it ends or `watch` expires. Returns false if the run ended, true if `watch` expired. One
  /// unit of work is about one visited position.
  bool advance(core::Stopwatch& watch);

  /// Returns the lowest peak so far. An order is better than another one only if its peak is lower.
  std::int64_t peak() const { return peak_; }
  /// Returns the best order of this object. Its peak is peak(), unless lower() set peak() to a lower value.
  const std::vector<StepId>& best() const { return best_; }
  /// Records that the caller knows an order with the given peak.
  void lower(std::int64_t peak);

 private:
  struct Move {
    std::int32_t from, to;
  };

  void retarget();
  void mark(std::int32_t position, bool above);
  std::int32_t below(std::int32_t n);
  bool chance(double probability);
  bool draw(Move& move);
  bool acceptable(const Move& move);
  void make(const Move& move);
  std::int64_t try_move();

  const StepGraph* graph_;
  core::Random random_;
  core::EditableSchedule current_;  ///< current order, stored without gaps, so that a Place is a position
  std::vector<StepId> best_;
  std::int64_t peak_ = 0, target_ = 0;
  std::int64_t at_peak_ = 0;                       ///< number of positions whose memory is at peak_ or above it
  std::int64_t since_best_ = 0;                    ///< work since the best order was found
  std::vector<std::int32_t> above_, above_index_;  ///< positions above the target, and their indices in above_
  std::int64_t done_ = 0, work_ = 0;               ///< work done and total work of the run
  double scale_ = 0;                               ///< mean rise of a step
  double hot_ = 0, temperature_ = 0;
};

}  // namespace cairn::solvers
