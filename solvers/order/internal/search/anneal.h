#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/order/internal/reduction/step_graph.h"

namespace cairn::solvers {

/// Makes an editable schedule of the graph's steps. Step s of the graph is occurrence s of the schedule. O(n + m) for n
/// steps and m edges.
core::EditableSchedule editable_order(const StepGraph& graph);

/// Improves topological orders by simulated annealing. A move shifts one step to another position. The target is a
/// number of bytes slightly below the lowest peak so far. The energy of an order is a sum over its positions. Each
/// position adds the number of bytes by which memory exceeds the target while the step at this position runs. It also
/// adds all bytes in memory then, with a small weight, so that the search lowers memory at positions below the target,
/// too. Because the energy is a sum and not a maximum, a move changes it only at the positions between the step's old
/// and new position.
class Annealing {
 public:
  Annealing(const StepGraph& graph, std::span<const StepId> start, std::uint64_t seed);

  /// Starts a run of `work` units of work from an order. The temperature falls during the run, from `hot` times the
  /// mean rise of a step (StepGraph::Step).
  void start(std::span<const StepId> order, std::int64_t work, double hot);
  /// Continues the run until it ends or `watch` expires. Returns true if `watch` expired. A unit of work is about one
  /// visited position of the order.
  bool advance(core::Stopwatch& watch);

  std::int64_t peak() const { return peak_; }
  /// Returns the order of lowest peak found. Its peak is peak(), unless lower() was called.
  const std::vector<StepId>& best() const { return best_; }
  /// Tells the search that an order with the given peak is known, so that only lower peaks are of interest.
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
  core::EditableSchedule current_;  ///< current order; none of its places is empty, so a step's place is its position
  std::vector<StepId> best_;
  std::int64_t peak_ = 0, target_ = 0;
  std::int64_t at_peak_ = 0;  ///< number of positions whose memory is at least peak_
  std::int64_t since_best_ = 0;
  std::vector<std::int32_t> above_, above_index_;  ///< positions above the target, and each position's index in above_
  std::int64_t done_ = 0, work_ = 0;               ///< work done and total work of the run
  double scale_ = 0;                               ///< mean rise of a step, in bytes
  double hot_ = 0, temperature_ = 0;
};

}  // namespace cairn::solvers
