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
/// lower or the upper end of a hole between those that live then. Of all placements the ones are kept that will leave
/// the fewest holes for the longest: two neighbours that end together leave one hole, others two. Steps of high load
/// weigh more. Where no placement is left, the search goes back some blocks and places them again with other weights
/// and noise, further back and with a wider beam the longer it gets no further.
///
/// A block is taken for a rectangle: the whole of its life times the most that it holds.
class TimeBeam {
 public:
  /// What all searches of an instance share.
  struct Problem {
    static constexpr std::size_t kTables = 4;
    struct Item {
      std::int32_t block = 0;
      std::int64_t first = 0, end = 0;  ///< steps; `end` is the first at which it is gone
      std::int64_t size = 0, alignment = 1;
    };
    std::vector<Item> items;  ///< by first step
    std::vector<core::AddressRange> forbidden;
    std::size_t blocks = 0;
    std::int64_t load = 0;  ///< bytes, the most of all items at once
    double mean_size = 0;   ///< bytes
    double mean_live = 0;   ///< items at once
    /// Of all steps before a step. Tables differ in how loads count.
    std::array<std::vector<double>, kTables> weights_before;

    /// Of an instance that is taken. O(b log b + steps).
    explicit Problem(const Instance& instance);
    /// Units of work that all items take once, with a narrow beam.
    std::int64_t pass_work() const;
  };

  /// Not where a block is fixed, as then what comes later is not free, or where there are so many blocks or steps that
  /// tables and the way back would take more than some 100 MB.
  static bool takes(const Instance& instance);

  /// The problem must outlive it. Searches of other seeds go other ways.
  TimeBeam(const Problem& problem, std::int64_t capacity, int seed);

  /// Goes on until a plan is found, or `work` units more are done, or more than *most in all, or the limit ends it, or
  /// it gets no further. One unit takes about as long as one of the exact search (exact.h).
  Verdict run(std::int64_t work, const std::atomic<std::int64_t>& most, const core::Stopwatch& watch);

  std::int64_t work() const { return work_; }
  /// Of Instance::blocks; where it fits.
  std::vector<std::int64_t> offsets() const;
  /// It has tried so often at one place that it is given up.
  bool stuck() const { return attempts_ > most_attempts_; }

 private:
  /// A block that lives, or a forbidden range, between neighbours.
  struct Live {
    std::int64_t offset = 0, top = 0, end = 0;
    double until = 0;  ///< weight of the steps before its end
    std::int32_t item = 0;
  };
  struct State {
    std::vector<Live> live;  ///< by ascending offset
    double holes = 0;        ///< weight of the borders between what is used and what is free, from now on
    std::uint64_t hash = 0;  ///< of the items that live and their offsets
    std::int32_t last = -1;  ///< in placed_
  };
  struct Child {
    double holes = 0;
    std::uint64_t hash = 0;
    std::int32_t parent = 0, position = 0;
    std::int64_t offset = 0;
  };
  struct Placed {
    std::int32_t before = -1, item = 0;  ///< the placement before it, or -1
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
  std::size_t alive_ = 0;  ///< of states_
  std::vector<Child> children_;
  std::vector<std::uint64_t> seen_;
  std::vector<Placed> placed_;
  std::deque<Snapshot> snapshots_;
  std::size_t next_ = 0, furthest_ = 0;   ///< item to be placed; and the last that no placement was found for
  int attempts_ = 0, most_attempts_ = 0;  ///< since `furthest_` was reached
  std::size_t table_ = 0;
  double small_hole_ = 0, noise_ = 0;  ///< bytes below which a hole counts less; weight
  std::int64_t work_ = 0;
};

}  // namespace cairn::solvers::plan
