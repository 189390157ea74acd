#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/plan/internal/exact/verdict.h"
#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// Searches for a plan that fits into a capacity by a beam search over time. Blocks are placed in the order of their
/// first steps. Each block is placed at the lower or the upper end of a hole, a range of free addresses between blocks
/// that are live at that time. A state is a placement of all blocks so far. The search keeps several states, the beam:
/// those with the least weight of holes. A hole weighs more if it lasts longer, or if many bytes are live at its steps.
/// Future holes count, too: two neighbouring blocks that end at the same step leave one hole later, and two that end at
/// different steps leave two holes. If a block fits into no hole of any state, the search removes the last blocks and
/// places them again with other weights and random noise. The longer the search makes no progress, the more blocks it
/// removes and the wider the beam becomes.
///
/// A block is treated as one rectangle, called an item: it uses its largest number of bytes from its first to its last
/// step.
class TimeBeam {
 public:
  /// Holds the data that all searches of one instance share.
  struct Problem {
    static constexpr std::size_t kTables = 4;
    struct Item {
      std::int32_t block = 0;
      std::int64_t first = 0, end = 0;  ///< first step of the item, and first step after it
      std::int64_t size = 0, alignment = 1;
    };
    std::vector<Item> items;  ///< ordered by first step
    std::vector<core::AddressRange> forbidden;
    std::size_t blocks = 0;
    std::int64_t load = 0;  ///< largest number of bytes that items use at one step
    double mean_size = 0;   ///< mean size of the items, in bytes
    double mean_live = 0;   ///< mean number of items that are live at once
    /// In each table, entry t is the sum of the weights of all steps before step t. The weight of a step rises with the
    /// number of live bytes, in each table at a different rate.
    std::array<std::vector<double>, kTables> weights_before;

    /// Prepares the data. takes(instance) must be true. O(b log b + s) for b blocks and s steps.
    explicit Problem(const Instance& instance);
    /// Returns the work of placing all items once with a beam of the least width, in units of work().
    std::int64_t pass_work() const;
  };

  /// Returns whether the search can be used on the instance. It cannot be used in these cases:
  /// - A block has a fixed offset, which the search ignores.
  /// - There are so many blocks or steps that tables and snapshots would take more than about 100 MB.
  static bool takes(const Instance& instance);

  /// Prepares a search for a plan of at most `capacity` bytes. Each seed gives a different search. The problem must
  /// outlive the search.
  TimeBeam(const Problem& problem, std::int64_t capacity, int seed);

  /// Continues the search until one of the following holds:
  /// - A plan is found.
  /// - This call has done `work` units of work, or all calls together have done more than `*most` units.
  /// - The time limit or the stop flag of `watch` ends the search.
  /// - The search is stuck().
  ///
  /// A unit of work takes about as long as a unit of the exact search (exact.h).
  Verdict run(std::int64_t work, const std::atomic<std::int64_t>& most, const core::Stopwatch& watch);

  std::int64_t work() const { return work_; }
  /// Returns the offsets in the order of Instance::blocks; valid if the verdict is `fits`.
  std::vector<std::int64_t> offsets() const;
  bool stuck() const { return attempts_ > most_attempts_; }

 private:
  /// Describes a live item of a state, at the addresses [offset, top). `item` is -1 for a forbidden range.
  struct Live {
    std::int64_t offset = 0, top = 0, end = 0;
    double until = 0;  ///< sum of the weights of all steps before `end`
    std::int32_t item = 0;
  };
  struct State {
    std::vector<Live> live;
    double holes = 0;  ///< weight of all holes from the current step on, as border() computes it
    std::uint64_t hash = 0;
    std::int32_t last = -1;  ///< index in placed_ of the latest placement; -1: no item is placed
  };
  /// Describes a state that follows from the state `parent` by placing the next item at `offset`. `position` is the
  /// item's index among the parent's live items.
  struct Child {
    double holes = 0;
    std::uint64_t hash = 0;
    std::int32_t parent = 0, position = 0;
    std::int64_t offset = 0;
  };
  struct Placed {
    /// - before: index in placed_ of the state's placement before this one; -1: there is none.
    /// - item: index of the placed item.
    std::int32_t before = -1, item = 0;
    std::int64_t offset = 0;
  };
  /// Stores the beam before the item `next` was placed, so that the search can go back to it.
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
  std::size_t alive_ = 0;  ///< number of states in the beam; other entries of states_ are unused
  std::vector<Child> children_;
  std::vector<std::uint64_t> seen_;
  std::vector<Placed> placed_;  ///< placements of all states, as lists linked by `before`
  std::deque<Snapshot> snapshots_;
  /// - next_: index of the next item to place.
  /// - furthest_: largest index of an item that fitted in no state.
  std::size_t next_ = 0, furthest_ = 0;
  /// - attempts_: number of times that the search has gone back since furthest_ last changed.
  /// - most_attempts_: the search gives up if attempts_ exceeds this number.
  int attempts_ = 0, most_attempts_ = 0;
  std::size_t table_ = 0;
  /// - small_hole_: bytes below which a hole counts less.
  /// - noise_: largest random amount that is added to the weight of a child's holes.
  double small_hole_ = 0, noise_ = 0;
  std::int64_t work_ = 0;
};

}  // namespace cairn::solvers::plan
