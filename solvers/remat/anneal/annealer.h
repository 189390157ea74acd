#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/remat/anneal/placement.h"

namespace cairn::solvers {

/// Simulated annealing of schedules: order and recomputation at once. A move evicts a value over steps that do not read
/// it, together with what its recomputation needs; or lets values stay instead; or shifts steps. It is made on an
/// EditableSchedule, so it costs what it touches, and taken back by its inverse unless it is accepted. Energy is cost
/// plus a price for every byte and step above the budget, which adapts so that a part of the visited schedules fits.
class Annealer {
 public:
  using Occurrence = core::EditableSchedule::Occurrence;
  using Place = core::EditableSchedule::Place;

  /// Schedules of the scope, whose order is free or that of the input; no recomputation where it allows none. The graph
  /// must outlive it.
  Annealer(const core::Graph& graph, const Scope& scope, std::uint64_t seed);

  /// Goes on from a valid schedule within the scope, within the budget or not. The best begins anew.
  void start(const std::vector<core::NodeId>& steps, std::int64_t budget);
  /// The same with addresses, as Placement::assign() takes them: what fits is a schedule with a plan, and moves change
  /// addresses too. What was run before without a placement tells what memory is worth. The placement must outlive the
  /// run.
  void start(const std::vector<core::NodeId>& steps, Placement& placement, std::span<const std::int64_t> offsets);
  /// A run of so many moves from there, with a placement of so much work, cooling geometrically; `hot` and `cold` in
  /// mean costs of a node. With a placement the price of what is shared rises from this part of what memory is worth.
  void begin_run(std::int64_t length, double hot, double cold, double first_price = 1);
  /// Goes on with the run until its end or until the watch expires, which is charged what the moves take.
  void advance(core::Stopwatch& watch);
  bool run_ended() const { return run_done_ >= run_length_; }
  /// A run ends early with a schedule within the budget that costs no more.
  void set_enough(std::int64_t cost) { enough_ = cost; }

  /// Whether a schedule within the budget was met since start(), and the cheapest of them.
  bool fits() const { return best_cost_ != kNone; }
  std::int64_t best_cost() const { return best_cost_; }
  const std::vector<core::NodeId>& best() const { return best_; }
  const std::vector<std::int64_t>& best_offsets() const { return best_offsets_; }
  std::int64_t cost() const { return cost_; }
  /// Where it stands.
  std::vector<core::NodeId> current() const { return schedule_.steps(); }
  const core::EditableSchedule& schedule() const { return schedule_; }
  std::int64_t moves() const { return moves_; }

 private:
  static constexpr std::int64_t kAdapt = 500;  ///< moves
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  /// What was edited in a move: an inserted occurrence, or one of `node` dropped that stood right before `before`.
  struct Edit {
    Occurrence occurrence, before;
    core::NodeId node;
  };

  Occurrence insert(core::NodeId v, Occurrence before, Occurrence like = core::EditableSchedule::kNone);
  void drop(Occurrence o);
  void drop_unneeded(Occurrence o);
  void undo();
  void count(const std::vector<core::NodeId>& steps);
  /// What is to become nothing: bytes and steps above the budget, or in conflict.
  double excess() const;
  bool fits_now() const { return placement_ ? placement_->conflicts() == 0 : schedule_.excess() == 0; }
  void keep_if_best();
  bool straighten();
  bool place_again(double cost_change, double excess_before);
  /// Of steps above the budget, so that a few bytes too many are no bargain.
  std::int64_t step_charge() const { return static_cast<std::int64_t>(unit_size_ * 0.3); }

  Occurrence random_step();
  Occurrence step_from(Place place) const;
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_.uniform() * static_cast<double>(n)); }
  bool chance(double p) { return random_.uniform() < p; }

  bool may_run_again(core::NodeId v) const;
  bool may_go(Occurrence o) const;
  void evict();
  void evict_conflict();
  void recompute(core::NodeId v, Occurrence use, Place across);
  void retain();
  void shift();
  void shift_to(Occurrence o, Occurrence before, int depth);
  void move();
  void adapt_price();

  const core::Graph& graph_;
  const Scope scope_;
  core::Random random_;
  core::EditableSchedule schedule_;
  std::vector<std::int32_t> count_;  ///< occurrences of each node
  std::int64_t cost_ = 0;
  double excess_price_;                   ///< what a byte and step above the budget costs without a placement
  double price_;                          ///< cost a byte and step above the budget
  double unit_cost_ = 1, unit_size_ = 1;  ///< means of what is not 0
  std::vector<Edit> edits_;
  std::vector<Occurrence> unneeded_;
  Placement* placement_ = nullptr;
  std::vector<core::NodeId> best_;
  std::vector<std::int64_t> best_offsets_;  ///< with a placement
  std::int64_t best_cost_ = kNone;
  std::int64_t enough_ = -1;
  std::int64_t moves_ = 0, run_length_ = 0, run_done_ = 0;
  std::int64_t fitting_ = 0;  ///< moves since the price was adapted after which it was within the budget
  double first_price_ = 1;
  std::int64_t straightened_ = 0;  ///< the placement's work when that was last tried
  double hot_ = 1, cold_ = 1, temperature_ = 1;
  int allowed_ = 0;  ///< occurrences that an eviction may still insert
};

}  // namespace cairn::solvers
