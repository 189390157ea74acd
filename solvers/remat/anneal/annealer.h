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

/// Draws the seeds of the islands of a search, i.e. of the annealers that run at a time: `count` of them; 0: one a
/// thread, or two under a limit of work, which must not depend on the machine.
std::vector<std::uint64_t> island_seeds(int count, const core::Limit& limit, std::uint64_t seed);

/// Simulated annealing of schedules: order and recomputation at once. A move evicts a value over steps that do not read
/// it, and adds its recomputation with the inputs that this needs; or lets values stay instead; or shifts steps. Moves
/// are made on an EditableSchedule, so their cost depends only on what they touch, and are undone by their inverse
/// unless accepted. Energy is cost plus a price for every byte and step above the budget, which adapts so that a part
/// of the visited schedules fits.
class Annealer {
 public:
  using Occurrence = core::EditableSchedule::Occurrence;
  using Place = core::EditableSchedule::Place;

  /// Prepares a search of schedules of the scope: in free order or in the input order, without recomputation if the
  /// scope allows none. The graph must outlive the annealer.
  Annealer(const core::Graph& graph, const Scope& scope, std::uint64_t seed);

  /// Continues from a valid schedule within the scope, within the budget or not. Forgets the best schedule so far.
  void start(const std::vector<core::NodeId>& steps, std::int64_t budget);
  /// Continues from a valid schedule with addresses, as Placement::assign() takes them: a schedule fits if its plan
  /// does, and moves change addresses too. Runs without a placement must come first, because they tell what memory is
  /// worth. The placement must outlive the run.
  void start(const std::vector<core::NodeId>& steps, Placement& placement, std::span<const std::int64_t> offsets);
  /// Begins a run of `length` moves (with a placement: units of its work), cooling geometrically; `hot` and `cold` are
  /// the first and last temperature in mean costs of a node. With a placement, the price of shared bytes rises from
  /// `first_price` times the worth of memory.
  void begin_run(std::int64_t length, double hot, double cold, double first_price = 1);
  /// Continues the run until its end or until the watch expires; charges the watch for the moves.
  void advance(core::Stopwatch& watch);
  bool run_ended() const { return run_done_ >= run_length_; }
  /// Ends runs early once a schedule within the budget costs no more than `cost`.
  void set_enough(std::int64_t cost) { enough_ = cost; }

  /// Whether a schedule within the budget was met since start(). If so, best_cost() and best() are those of the
  /// cheapest.
  bool fits() const { return best_cost_ != kNone; }
  std::int64_t best_cost() const { return best_cost_; }
  const std::vector<core::NodeId>& best() const { return best_; }
  const std::vector<std::int64_t>& best_offsets() const { return best_offsets_; }
  std::int64_t cost() const { return cost_; }
  /// The current schedule.
  std::vector<core::NodeId> current() const { return schedule_.steps(); }
  const core::EditableSchedule& schedule() const { return schedule_; }
  std::int64_t moves() const { return moves_; }

 private:
  static constexpr std::int64_t kAdapt = 500;  ///< number of moves between two changes of the price
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  /// One edit of a move: an inserted occurrence, or a dropped occurrence of `node` that stood right before `before`.
  struct Edit {
    Occurrence occurrence, before;
    core::NodeId node;
  };

  Occurrence insert(core::NodeId v, Occurrence before, Occurrence like = core::EditableSchedule::kNone);
  void drop(Occurrence o);
  void drop_unneeded(Occurrence o);
  void undo();
  void count(const std::vector<core::NodeId>& steps);
  /// The quantity to bring to 0: bytes times steps above the budget; with a placement, in conflict.
  double excess() const;
  bool fits_now() const { return placement_ ? placement_->conflicts() == 0 : schedule_.excess() == 0; }
  void keep_if_best();
  bool straighten();
  bool place_again(double cost_change, double excess_before);
  /// Charge for each step above the budget, so that exceeding the budget by a few bytes does not pay.
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
  std::vector<std::int32_t> count_;  ///< number of occurrences of each node
  std::int64_t cost_ = 0;
  double excess_price_;                   ///< cost of a byte and step above the budget, without a placement
  double price_;                          ///< cost of a byte and step above the budget
  double unit_cost_ = 1, unit_size_ = 1;  ///< mean cost of a node and mean size of a value, over those that are not 0
  std::vector<Edit> edits_;
  std::vector<Occurrence> unneeded_;
  Placement* placement_ = nullptr;
  std::vector<core::NodeId> best_;
  std::vector<std::int64_t> best_offsets_;  ///< offsets of the best schedule; only with a placement
  std::int64_t best_cost_ = kNone;
  std::int64_t enough_ = -1;
  std::int64_t moves_ = 0, run_length_ = 0, run_done_ = 0;
  std::int64_t fitting_ = 0;  ///< number of moves since the last change of the price that ended within the budget
  double first_price_ = 1;
  std::int64_t straightened_ = 0;  ///< work of the placement when straighten() was last tried
  double hot_ = 1, cold_ = 1, temperature_ = 1;
  int allowed_ = 0;  ///< number of occurrences that an eviction may still insert
};

}  // namespace cairn::solvers
