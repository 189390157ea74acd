#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// The rule that chooses a free gap for a block: the smallest gap that is large enough, or the lowest such gap.
enum class Fit : std::uint8_t { best, lowest };

/// Returns whether the block has a hint that is a possible offset. Hints that are impossible are ignored.
bool usable_hint(const Block& block);

/// An index of placed rectangles by the steps at which they live. A query for the steps first ... last combines two
/// lists: the rectangles that live at `first`, and those that start later in this range.
class TimeIndex {
 public:
  explicit TimeIndex(std::int64_t steps);

  void clear();
  void insert(const Rectangle& rectangle, std::int32_t id);

  template <class Visit>
  void visit(const Rectangle& rectangle, const Visit& visit) const {
    for (std::int64_t node = rectangle.first + width_; node > 0; node /= 2) {
      for (const std::int32_t id : covering_[node]) visit(id);
    }
    for (std::int64_t step = rectangle.first + 1;
         step <= rectangle.last && step < static_cast<std::int64_t>(starting_.size()); ++step) {
      for (const std::int32_t id : starting_[step]) visit(id);
    }
  }

 private:
  std::int64_t width_ = 1;
  std::vector<std::vector<std::int32_t>>
      covering_;  ///< segment tree over time: rectangles that live during all of a node's range
  std::vector<std::vector<std::int32_t>> starting_;  ///< for each step, the rectangles that start there
};

/// Places blocks one by one, each in a gap between the placed blocks that live at the same time. Fixed blocks are
/// placed first.
class Placer {
 public:
  /// Prepares the placer. `conflicts` is the number of pairs of rectangles that live at the same time. If this number
  /// is small, the rectangles that conflict with a block are found by a TimeIndex. Otherwise all placed rectangles are
  /// kept sorted by offset, and the whole list is scanned for each block.
  Placer(const Instance& instance, double conflicts, core::Stopwatch& watch);

  /// Places the blocks of `order`, none of which is fixed. Sets `offsets[b]` for every block b, including fixed ones.
  /// With `hints`, a block is placed at its hint if that address is free. Returns the height of the arena. With
  /// `may_stop`, returns kStopped if the time runs out before all blocks are placed. O(b * (conflicts + log b)).
  std::int64_t place(const std::vector<std::int32_t>& order, std::vector<std::int64_t>& offsets, Fit fit,
                     bool hints = false, bool may_stop = false);
  static constexpr std::int64_t kStopped = std::numeric_limits<std::int64_t>::max();

 private:
  struct Placed {
    std::int64_t offset, end, first, last;
  };
  /// Looking up and sorting one rectangle takes about as long as this many comparisons.
  static constexpr std::int64_t kLookup = 10;

  void insert(const Rectangle& rectangle, std::int64_t offset);
  template <class Visit>
  void conflicts(const Rectangle& rectangle, const Visit& visit, bool sorted);
  bool free_at(const Block& block, std::int64_t offset);
  std::int64_t gap_for(const Rectangle& rectangle, std::int64_t alignment);
  std::int64_t lowest_for(const Block& block);

  const Instance& instance_;
  core::Stopwatch& watch_;
  std::optional<TimeIndex> index_;
  Fit fit_ = Fit::best;
  std::vector<Placed> forbidden_;  ///< forbidden addresses, as rectangles placed for all time
  /// If there is an index, the placed rectangles by number. Otherwise, the placed rectangles and the forbidden
  /// addresses by ascending offset.
  std::vector<Placed> placed_;
  std::vector<Placed> found_;
  /// Open intervals of offsets at which the current block would overlap a placed one.
  std::vector<std::pair<std::int64_t, std::int64_t>> blocked_;
};

}  // namespace cairn::solvers::plan
