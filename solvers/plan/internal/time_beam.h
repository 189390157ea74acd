#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/plan/internal/instance.h"
#include "cairn/solvers/plan/internal/verdict.h"

namespace cairn::solvers::plan {

/// A beam search over time for a plan below a capacity. Blocks are placed in the order in which they begin, each at the
/// lower or the upper end of a hole between those live at that time. The placements kept are those that will leave the
/// fewest holes for the longest: two neighbours that end together leave one hole, others two. Steps of high load weigh
/// more. If no placement is left, the search goes back some blocks and places them again with other weights and noise.
/// The longer it makes no progress, the further it goes back and the wider its beam.
///
/// A block is treated as a rectangle: its whole life times the most that it holds.
class TimeBeam {
 public:
  /// The data that all searches of an instance share.
  struct Problem {
    static constexpr std::size_t kTables = 4;
    struct Item {
      std::int32_t block = 0;
      std::int64_t first = 0, end = 0;  ///< first step, and the first step at which the item is gone
      std::int64_t size = 0, alignment = 1;
    };
    std::vector<Item> items;  ///< items by first step
    std::vector<core::AddressRange> forbidden;
    std::size_t blocks = 0;
    std::int64_t load = 0;  ///< bytes of all items at the step of the highest load
    double mean_size = 0;   ///< mean size of the items, in bytes
    double mean_live = 0;   ///< mean number of items that are live at once
    /// Sum of the weights of all steps before a step, by step. Tables differ in how loads count.
    std::array<std::vector<double>, kTables> weights_before;

    /// Prepares the data. The instance must satisfy takes(). O(b log b + steps).
    explicit Problem(const Instance& instance);
    /// Computes the units of work for placing all items once with a narrow beam.
    std::int64_t pass_work() const;
  };

  /// Whether the search can be used on the instance. It cannot if a block is fixed, because later addresses are then
  /// not free, or if there are so many blocks or steps that tables and snapshots would take more than some 100 MB.
  static bool takes(const Instance& instance);

  /// Starts a search. The problem must outlive it. Each seed gives a different search.
  TimeBeam(const Problem& problem, std::int64_t capacity, int seed);

  /// Continues until a plan is found, until `work` more units are done, until more than *most units are done in all,
  /// until the limit ends it, or until it is stuck. One unit takes about as long as one of the exact search (exact.h).
  Verdict run(std::int64_t work, const std::atomic<std::int64_t>& most, const core::Stopwatch& watch);

  std::int64_t work() const { return work_; }
  /// Returns the offsets in the order of Instance::blocks; valid if the verdict is `fits`.
  std::vector<std::int64_t> offsets() const;
  /// Whether the search gave up after too many attempts at one place.
  bool stuck() const { return attempts_ > most_attempts_; }

 private:
  /// A live block, or a forbidden range, between its neighbours.
  struct Live {
    std::int64_t offset = 0, top = 0, end = 0;
    double until = 0;  ///< weight of all steps before its end
    std::int32_t item = 0;
  };
  struct State {
    std::vector<Live> live;  ///< live items by ascending offset
    double holes = 0;        ///< weight of the borders between used and free bytes, from now on
    std::uint64_t hash = 0;  ///< hash of the live items and their offsets
    std::int32_t last = -1;  ///< index of the last placement in placed_
  };
  struct Child {
    double holes = 0;
    std::uint64_t hash = 0;
    std::int32_t parent = 0, position = 0;
    std::int64_t offset = 0;
  };
  struct Placed {
    std::int32_t before = -1, item = 0;  ///< index of the previous placement, or -1; the item placed
    std::int64_t offset = 0;
  };
  struct Snapshot {
    std::size_t next = 0, placed = 0;
    std::vector<State> states;
  };

  void choose_weights();
  double border(double below, double above, std::int64_t hole, double now) const;
  void settle(State& state, std::int64_t now) const;
  void branch(const State& state, std::int32_t parent, const Problem::Item& item);
  void select(const Problem::Item& item, std::int32_t number);
  void go_back();
  void remember();
  std::uint64_t hash_of(std::int32_t item, std::int64_t offset) const;

  const Problem& problem_;
  const std::int64_t capacity_;
  core::Random random_;
  std::vector<State> states_, next_states_;
  std::size_t alive_ = 0;  ///< number of valid entries in states_
  std::vector<Child> children_;
  std::vector<std::uint64_t> seen_;
  std::vector<Placed> placed_;
  std::deque<Snapshot> snapshots_;
  std::size_t next_ = 0, furthest_ = 0;   ///< next item to place; last item that had no placement
  int attempts_ = 0, most_attempts_ = 0;  ///< attempts since `furthest_` was reached; most attempts
  std::size_t table_ = 0;
  double small_hole_ = 0, noise_ = 0;  ///< bytes below which a hole counts less; weight of noise
  std::int64_t work_ = 0;
};

}  // namespace cairn::solvers::plan
