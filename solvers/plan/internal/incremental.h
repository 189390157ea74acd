#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/plan/internal/live_bytes.h"
#include "cairn/solvers/plan/internal/occupancy.h"
#include "cairn/solvers/plan/planner.h"

namespace cairn::solvers::plan {

/// A plan that follows local changes of its problem: what is touched is placed anew, and where that raises the arena
/// its neighbours near the top are moved. For searches that change a schedule and ask for the height at once. Times are
/// labels: any integers up to 2^60 in magnitude, so that a step between two others gets one between theirs.
///
/// A block's place is found in O(log b) steps through ranges of used addresses, however many blocks live as long as it;
/// where the arena rises, up to some hundred blocks are placed anew. Among 100,000 buffers a change takes 10 us to 5
/// ms. The height drifts upwards over many changes, as an arena's does; replan() starts anew. Not thread-safe.
class IncrementalPlan {
 public:
  using BlockId = std::int32_t;  ///< never used again for another block, but after undo()

  /// What shares one offset: rectangles that ascend in time. Two neighbours may meet in one step, at which the later
  /// one takes over in place; where there are steps between them the bytes are free for others.
  struct Spec {
    std::vector<Rectangle> rectangles;   ///< sizes in bytes, rounded up and guarded as PlanOptions says
    std::int64_t alignment = 1;          ///< 1 to 2^30; as in PlacementRules, beside that of PlanOptions
    std::optional<std::int64_t> offset;  ///< it lies there and nowhere else
  };
  /// One local change.
  struct Edit {
    std::vector<BlockId> removed;
    std::vector<std::pair<BlockId, Spec>> changed;
    std::vector<Spec> inserted;
  };

  /// Plans the problem with greedy_plan; step s gets the label s * spacing. Throws InputError as greedy_plan, and on a
  /// spacing that takes a label over 2^60.
  explicit IncrementalPlan(const PlanProblem& problem, const PlanOptions& options = {.limit = {.work = 0}},
                           std::int64_t spacing = 1);

  /// The block of one of the problem's buffers.
  BlockId block_of(std::size_t buffer) const { return block_of_[buffer]; }

  /// Returns the blocks of edit.inserted. Throws InputError on a malformed block, one that is not there, or a fixed one
  /// that meets another or a forbidden range; then nothing has changed.
  std::vector<BlockId> apply(const Edit& edit);
  /// Takes back the last apply(), once: every offset is what it was.
  void undo();
  /// Plans everything from scratch, which undo() cannot take back. O(b log b) with no limit's work.
  void replan(const core::Limit& limit = {.work = 0});

  std::int64_t height() const { return height_; }
  std::int64_t max_live() const { return live_.most(); }
  /// Of a closed range of times.
  std::int64_t max_live(std::int64_t first, std::int64_t last) const { return live_.most(first, last); }
  /// No plan is lower: max_live() beside forbidden addresses.
  std::int64_t lower_bound() const;
  std::int64_t offset(BlockId block) const { return slots_[block].offset; }

 private:
  struct Slot {
    std::vector<Rectangle> rectangles;  ///< none: the block is not there
    std::int64_t alignment = 1;
    std::optional<std::int64_t> fixed;
    std::int64_t offset = -1;  ///< -1: not placed

    std::int64_t size() const;
    std::int64_t length() const { return rectangles.back().last - rectangles.front().first; }
  };

  Slot slot_of(const Spec& spec) const;
  void check(BlockId block) const;
  void define(BlockId block, Slot slot);
  void place(BlockId block, std::int64_t offset);
  void unplace(BlockId block);
  void touch(BlockId block);
  void forget();
  void sort_by_length(std::vector<BlockId>& blocks) const;
  bool place_below(BlockId block, std::int64_t limit);
  void place_fixed(BlockId block, std::vector<BlockId>& evicted);
  bool at_top(std::int64_t first, std::int64_t last) const;
  bool lower_top();
  bool lower(BlockId block, std::int64_t limit);
  bool place_again(std::vector<BlockId> blocks, std::int64_t limit);
  void rebuild();

  std::int64_t alignment_, guard_ = 0;
  std::vector<core::AddressRange> forbidden_;
  std::vector<std::int32_t> block_of_;
  std::vector<Slot> slots_;
  Occupancy occupancy_;
  LiveBytes live_;
  std::int64_t height_ = 0;
  std::int64_t bytes_ = 0;  ///< of all sizes
  bool stuck_ = false;      ///< the top could not be lowered

  // Of the last change: what its blocks were, and how many blocks there were.
  std::vector<std::pair<BlockId, Slot>> before_;
  std::vector<bool> touched_;
  std::size_t count_before_ = 0;
  bool stuck_before_ = false;
  std::int64_t changes_ = 0;  ///< since the time axis was cut into sections
};

}  // namespace cairn::solvers::plan
