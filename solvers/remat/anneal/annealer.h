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

/// Draws one random seed for each of `count` islands. An island is one of several annealers that run in parallel. If
/// `count` is 0, draws one seed for each thread or, if `limit` counts work units instead of time, two seeds, so that
/// the result does not depend on the number of threads.
std::vector<std::uint64_t> island_seeds(int count, const core::Limit& limit, std::uint64_t seed);

/// Searches for cheap schedules by simulated annealing, which changes order and recomputation together. A move makes
/// one or more of these changes:
/// - An eviction removes a value from memory during steps that do not read it. It adds a recomputation of the value,
///   and often of inputs that are no longer in memory.
/// - A retention removes a recomputation, so that the value stays in memory instead.
/// - A shift moves a step to another position.
///
/// A move that is not accepted is undone. Annealing minimises `cost + price * excess`. The excess is the sum over all
/// steps of the bytes above the budget. The price is adapted so that a certain fraction of the visited schedules is
/// within the budget.
class Annealer {
 public:
  using Occurrence = core::EditableSchedule::Occurrence;
  using Place = core::EditableSchedule::Place;

  /// Prepares a search among the schedules that `scope` allows. The order rule of `scope` must be `free` or `input`. If
  /// Scope::max_occurrences is 1, no node may run twice, so all moves are shifts. The graph must outlive the annealer.
  Annealer(const core::Graph& graph, const Scope& scope, std::uint64_t seed);

  /// Sets the schedule from which the next run starts. It must be valid and allowed by the scope, but may exceed the
  /// budget (bytes). Forgets the best schedule found before.
  void start(const std::vector<core::NodeId>& steps, std::int64_t budget);
  /// Sets a valid schedule and the addresses of its values. The next run starts from them. `offsets` are the addresses
  /// in bytes, in the order that Placement::assign() describes. From now on, moves change addresses too, and a schedule
  /// is within the budget if no two of its values are in conflict (see Placement). A run without a placement must be
  /// made before, because it finds the price of a byte above the budget. The placement must outlive the run.
  void start(const std::vector<core::NodeId>& steps, Placement& placement, std::span<const std::int64_t> offsets);
  /// Begins a run of `length` moves or, with a placement, of `length` units of the work that advance() charges. The
  /// temperature falls geometrically from `hot` to `cold`, both in units of the mean cost of a node. With a placement,
  /// the price of a byte that two values share rises during the run. Its first value is `first_price` times the price
  /// found by runs without a placement.
  void begin_run(std::int64_t length, double hot, double cold, double first_price = 1);
  /// Continues the run until it ends or the watch expires. Charges the watch one unit for each move and for each edit,
  /// plus the work of the placement.
  void advance(core::Stopwatch& watch);
  bool run_ended() const { return run_done_ >= run_length_; }
  /// Makes the current run and later runs end as soon as a schedule within the budget costs at most `cost`.
  void set_enough(std::int64_t cost) { enough_ = cost; }

  /// Returns whether a schedule within the budget was found since start(). If so, best() is the cheapest such schedule,
  /// and best_cost() is its cost.
  bool fits() const { return best_cost_ != kNone; }
  std::int64_t best_cost() const { return best_cost_; }
  const std::vector<core::NodeId>& best() const { return best_; }
  const std::vector<std::int64_t>& best_offsets() const { return best_offsets_; }
  std::int64_t cost() const { return cost_; }
  std::vector<core::NodeId> current() const { return schedule_.steps(); }
  const core::EditableSchedule& schedule() const { return schedule_; }
  std::int64_t moves() const { return moves_; }

 private:
  static constexpr std::int64_t kAdapt = 500;  ///< number of moves between two adaptations of the price
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  /// Records an edit of the current move. If `before` is kNone, the occurrence was inserted. Otherwise, an occurrence
  /// of `node` was removed from the position right before the occurrence `before`.
  struct Edit {
    Occurrence occurrence, before;
    core::NodeId node;
  };

  Occurrence insert(core::NodeId v, Occurrence before, Occurrence like = core::EditableSchedule::kNone);
  void drop(Occurrence o);
  void drop_unneeded(Occurrence o);
  void undo();
  void count(const std::vector<core::NodeId>& steps);
  /// Returns the quantity that the price applies to. Without a placement, this is the sum over all steps of the bytes
  /// above the budget, plus step_charge() for each step above the budget. With a placement, it is the overlap of
  /// conflicting values, plus step_charge() for each conflict.
  double excess() const;
  bool fits_now() const { return placement_ ? placement_->conflicts() == 0 : schedule_.excess() == 0; }
  void keep_if_best();
  bool straighten();
  bool place_again(double cost_change, double excess_before);
  /// Returns the bytes that excess() adds for each step above the budget, or for each conflict. Without this charge, it
  /// would often pay to exceed the budget by only a few bytes.
  std::int64_t step_charge() const { return static_cast<std::int64_t>(unit_size_ * 0.3); }

  Occurrence random_step();
  Occurrence step_from(Place place) const;
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_.uniform() * static_cast<double>(n)); }
  bool chance(double p) { return random_.uniform() < p; }

  bool may_run_again(core::NodeId v) const;
  bool may_go(Occurrence o) const;
  void evict();
  bool evict_across(Occurrence o, Place at);
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
  std::vector<std::int32_t> count_;  ///< number of occurrences of each node
  std::int64_t cost_ = 0;
  /// Value of price_ at the end of the last run without a placement.
  double excess_price_;
  double price_;                          ///< price of one byte above the budget during one step, in units of cost
  double unit_cost_ = 1, unit_size_ = 1;  ///< mean nonzero cost and mean nonzero size of a node
  std::vector<Edit> edits_;
  std::vector<Occurrence> unneeded_;
  Placement* placement_ = nullptr;
  std::vector<core::NodeId> best_;
  std::vector<std::int64_t> best_offsets_;  ///< addresses for best_; used only with a placement
  std::int64_t best_cost_ = kNone;
  std::int64_t enough_ = -1;
  std::int64_t moves_ = 0, run_length_ = 0, run_done_ = 0;
  /// Number of moves, since the last adaptation of the price, after which the schedule was within the budget.
  std::int64_t fitting_ = 0;
  double first_price_ = 1;
  std::int64_t straightened_ = 0;  ///< Placement::work() at the last attempt of straighten()
  double hot_ = 1, cold_ = 1, temperature_ = 1;
  int allowed_ = 0;  ///< number of occurrences that the current call of recompute() may still insert
};

}  // namespace cairn::solvers
