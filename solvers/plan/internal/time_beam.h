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

/// A beam search over time for a plan below a capacity. Blocks are placed in the order in which they begin. Each block
/// is placed at the lower or the upper end of a hole between the blocks live at that time. The search keeps the
/// placements with the fewest holes, where a hole counts more the longer it lasts. Two neighbouring blocks that end
/// together leave one hole; others leave two. Holes at steps with many live bytes count more. If no placement is left,
/// the search goes back some blocks and places them again with other weights and noise. The longer it makes no
/// progress, the further it goes back and the wider its beam becomes.
///
/// A block is treated as a rectangle: it holds its largest number of bytes during its whole lifetime.
class TimeBeam {
 public:
  /// The data that all searches of one instance share.
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
    std::int64_t load = 0;  ///< largest number of bytes of all items at one step
    double mean_size = 0;   ///< mean size of the items, in bytes
    double mean_live = 0;   ///< mean number of items that are live at once
    /// Indexed by step: the sum of the weights of all earlier steps. There are several tables, in which the live bytes
    /// of a step count differently.
    std::array<std::vector<double>, kTables> weights_before;

    /// Prepares the data. The instance must satisfy takes(). O(b log b + steps).
    explicit Problem(const Instance& instance);
    /// Returns the units of work for placing all items once with a narrow beam.
    std::int64_t pass_work() const;
  };

  /// Returns whether the search can be used on the instance. It cannot be used in two cases:
  /// - A block is fixed, so that addresses at later steps are not free.
  /// - There are so many blocks or steps that tables and snapshots would take more than about 100 MB.
  static bool takes(const Instance& instance);

  /// Starts a search. The problem must outlive the search. Each seed gives a different search.
  TimeBeam(const Problem& problem, std::int64_t capacity, int seed);

  /// Continues the search until one of the following holds:
  /// - A plan is found.
  /// - This call has done `work` units, or all calls together have done more than *most units.
  /// - The limit ends the search.
  /// - The search is stuck().
  /// One unit takes about as long as a unit of the exact search (exact.h).
  Verdict run(std::int64_t work, const std::atomic<std::int64_t>& most, const core::Stopwatch& watch);

  std::int64_t work() const { return work_; }
  /// Returns the offsets in the order of Instance::blocks; valid if the verdict is `fits`.
  std::vector<std::int64_t> offsets() const;
  /// Returns whether the search gave up after too many attempts without progress.
  bool stuck() const { return attempts_ > most_attempts_; }

 private:
  /// A live block, or a forbidden range, in the list of a state.
  struct Live {
    std::int64_t offset = 0, top = 0, end = 0;
    double until = 0;  ///< sum of the weights of all steps before `end`
    std::int32_t item = 0;
  };
  struct State {
    std::vector<Live> live;  ///< live items by ascending offset
    double holes = 0;  ///< sum of the weights of the borders between used and free bytes, from the current step on
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
    /// - before: index of the previous placement, or -1.
    /// - item: index of the item that was placed.
    std::int32_t before = -1, item = 0;
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
  /// - next_: index of the next item to place.
  /// - furthest_: largest index of an item for which no placement was found.
  std::size_t next_ = 0, furthest_ = 0;
  /// - attempts_: number of attempts since furthest_ was reached.
  /// - most_attempts_: largest number of attempts allowed.
  int attempts_ = 0, most_attempts_ = 0;
  std::size_t table_ = 0;
  /// - small_hole_: bytes below which a hole counts less.
  /// - noise_: weight of the noise.
  double small_hole_ = 0, noise_ = 0;
  std::int64_t work_ = 0;
};

}  // namespace cairn::solvers::plan
