#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/plan/internal/sections.h"
#include "cairn/solvers/plan/internal/verdict.h"

namespace cairn::solvers::plan {

/// A depth-first search for offsets below a capacity. Given enough time, it finds a plan or proves that no plan exists.
///
/// The time axis is divided into sections (sections.h). In every section, blocks are stacked from the bottom. If no
/// byte may be left unused, they are stacked from the top as well. Blocks placed from below end at `low`; blocks placed
/// from above begin at `high`. A block is open while it is not placed. The slack of a section is the space between
/// `low` and `high`, less the bytes of the section's open blocks. If any plan exists, a plan exists in which every
/// block lies on another block, on an obstacle or at 0, because all blocks can be pushed down. So the search repeats
/// these steps:
/// - It picks a section and decides which block holds the byte at its `low`, or that no block does. It only picks a
/// section in which every block that can hold this byte lies directly on what is below it in all sections of the block.
/// The section with the lowest `low` always qualifies.
/// - It raises every open block to the highest `low` of the block's sections. It raises the `low` of a section to the
/// lowest offset of the section's open blocks. This costs slack; if the slack becomes negative, there is no plan.
/// - To exclude a block from holding the byte, it raises the block to the next top on which the block could lie.
/// - Where no open block spans two neighbouring sections, it splits the problem into parts, which are searched one by
/// one. A part without a solution is remembered by its blocks and their ranges of offsets, for all restarts.
///
/// Sections in which the fewest blocks can hold the byte come first; sections with much slack come last. Among the
/// blocks, the one that touches most walls of its valley comes first. A valley is a run of sections with equal `low`
/// that is lower than the sections on both sides. Noise is added to both choices, anew at every restart.
class Search {
 public:
  /// Starts a search. Different numbers `strategy` (0, 1, ...) give different searches.
  Search(const Sections& sections, std::int64_t capacity, int strategy);

  /// Continues the search until one of the following holds:
  /// - There is a verdict.
  /// - This call has done `work` units, or all calls together have done more than *most units.
  /// - The limit's time or stop flag ends the search.
  /// A unit is a visit of a block or a section, so the number of units is deterministic.
  Verdict run(std::int64_t work, const std::atomic<std::int64_t>& most, const core::Stopwatch& watch);

  std::int64_t work() const { return work_; }
  std::int64_t nodes() const { return nodes_; }
  /// Returns the offsets in the order of Sections::movable; valid if the verdict is `fits`.
  const std::vector<std::int64_t>& offsets() const { return offset_; }

 private:
  enum class Side : std::uint8_t { bottom, top };
  enum class Result : std::uint8_t { solved, failed, cut };
  struct Cell {
    std::int32_t section = -1;
    Side side = Side::bottom;
  };
  struct Key {
    std::uint64_t a = 0, b = 0;
    bool operator==(const Key&) const = default;
  };
  struct Change {
    std::int64_t* where;
    std::int64_t was;
  };

  bool open_all();
  Result search_parts(std::size_t begin, std::size_t end);
  Result search_part(std::size_t begin, std::size_t end);

  void set(std::int64_t& where, std::int64_t value) {
    changes_.push_back({&where, where});
    where = value;
  }
  void undo(std::size_t mark);
  void place(std::int32_t b, Side side);
  bool raise(std::int32_t b, std::int64_t offset);
  bool lower(std::int32_t b, std::int64_t offset);
  void mark(std::int32_t section, Side side);
  void mark_held(std::int32_t b, Side side);
  bool settle();
  bool settle(std::int32_t section, Side side);
  void forget_marks();
  void rehash(std::int32_t b);
  bool exclude(std::int32_t b, Side side, std::size_t begin, std::size_t end);
  std::int64_t obstructed(std::int32_t section, std::int64_t from, std::int64_t to) const;
  Key key(std::size_t begin, std::size_t end) const;
  Cell pick_cell(std::size_t begin, std::size_t end);
  std::int32_t pick_block(Cell cell, std::size_t begin, std::size_t end);
  bool touches(std::int32_t b, Cell cell) const;
  bool level(std::int32_t b, Side side) const;
  double noise(double amount) { return amount * static_cast<double>(random_.next() % 1024) / 1024.0; }
  bool cut();

  const Sections& sections_;
  const std::int64_t capacity_;
  const int strategy_;
  /// Indexed by block.
  /// - first_, last_: first and last section of the block.
  /// - twin_: the first block that has the same alignment, sections and sizes.
  std::vector<std::int32_t> first_, last_, twin_;
  std::vector<std::int64_t> size_, smallest_;  ///< for each block, its largest and smallest size

  /// Indexed by section.
  /// - low_: end of the blocks placed from below.
  /// - high_: beginning of the blocks placed from above.
  /// - slack_: the slack of the section (see above).
  /// - open_count_: number of open blocks.
  std::vector<std::int64_t> low_, high_, slack_, open_count_;
  std::vector<std::int64_t> least_, most_;     ///< for each block, the range of its possible offsets
  std::vector<std::int64_t> hash_a_, hash_b_;  ///< for each block, two hashes of the block and its range
  std::vector<std::int64_t> placed_;           ///< for each block, 1 if it is placed, otherwise 0
  std::vector<std::int64_t> offset_;
  std::vector<Change> changes_;
  std::vector<std::int32_t> open_;  ///< stack of lists of open blocks, each list ordered by first section
  std::vector<std::int32_t> dirty_[2];
  std::vector<char> is_dirty_[2];
  std::vector<Key> failed_;  ///< hash table of the parts that have no solution

  // Scratch memory of pick_cell().
  std::vector<std::int32_t> plateau_, begin_, count_;
  std::vector<char> valley_, uneven_;

  core::Random random_;
  double noise_ = 0;
  int order_ = 0;
  std::int64_t restarts_ = 0, nodes_ = 0, work_ = 0, node_limit_ = 0, work_limit_ = 0, next_check_ = 0;
  const std::atomic<std::int64_t>* most_work_ = nullptr;
  const core::Stopwatch* watch_ = nullptr;
  bool stopped_ = false, is_cut_ = false;
};

}  // namespace cairn::solvers::plan
