#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

/// Names the rule that chooses a gap (a free range of addresses) for a block. Of the gaps that are large enough, `best`
/// takes the smallest, and `lowest` takes the gap at the lowest address.
enum class Fit : std::uint8_t { best, lowest };

/// Returns whether the block has a hint that is a valid offset. Other hints are ignored.
bool usable_hint(const Block& block);

/// Finds placed rectangles by time. A rectangle is a range of steps and a range of addresses that a block uses
/// (instance.h). Finds the rectangles that are live during a range of steps in two groups: those that are live at its
/// first step, and those that start later in the range.
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
      covering_;  ///< segment tree over time: the rectangles that are live during all steps of a node's range
  std::vector<std::vector<std::int32_t>> starting_;
};

/// Places blocks one by one, each in a gap between placed blocks that live at the same time. Blocks with fixed offsets
/// are placed first.
class Placer {
 public:
  /// Prepares the placer. `conflicts` is the number of pairs of rectangles that are live at the same time. If this
  /// number is small, a TimeIndex finds the rectangles that are live at the same time as a block. Otherwise all placed
  /// rectangles are kept sorted by offset, and the whole list is scanned for each block.
  Placer(const Instance& instance, double conflicts, core::Stopwatch& watch);

  /// Places the fixed blocks and the blocks of `order`, none of which is fixed. Sets `offsets[b]` for every block b. If
  /// `hints` is true, places a block at its hint if those addresses are free. Returns the height of the arena in bytes.
  /// If `may_stop` is true, returns kStopped when the limit is reached before all blocks are placed. Takes O(b (c + log
  /// b)) time for b blocks, if each is live at the same time as c other blocks.
  std::int64_t place(const std::vector<std::int32_t>& order, std::vector<std::int64_t>& offsets, Fit fit,
                     bool hints = false, bool may_stop = false);
  static constexpr std::int64_t kStopped = std::numeric_limits<std::int64_t>::max();

 private:
  struct Placed {
    std::int64_t offset, end, first, last;
  };
  /// Work of finding and sorting one rectangle, in comparisons of buffers.
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
  std::vector<Placed> forbidden_;  ///< forbidden addresses, as rectangles that are live at all steps
  /// With a TimeIndex: the placed rectangles in the order of placement. Without a TimeIndex: the placed rectangles and
  /// the forbidden addresses, by ascending offset.
  std::vector<Placed> placed_;
  std::vector<Placed> found_;
  /// Open intervals of offsets at which the current block would overlap a placed rectangle.
  std::vector<std::pair<std::int64_t, std::int64_t>> blocked_;
};

}  // namespace cairn::solvers::plan
