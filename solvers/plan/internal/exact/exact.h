#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/plan/internal/exact/sections.h"
#include "cairn/solvers/plan/internal/exact/verdict.h"

namespace cairn::solvers::plan {

/// Searches depth-first for a plan that fits into a capacity. Given enough time, the search finds a plan or proves that
/// there is none.
///
/// The time axis is divided into sections (sections.h). In every section, blocks are stacked upwards from the bottom to
/// an address called `low`. If no byte of a section may stay unused, blocks are also stacked downwards from the top to
/// an address called `high`. A block that is not placed yet is open, and has a range of possible offsets. The slack of
/// a section is the number of free bytes between `low` and `high`, minus the bytes of the section's open blocks.
///
/// All blocks of a plan can be pushed down. So if there is a plan, there is one in which every block lies at 0, on
/// another block or on an obstacle, i.e. a forbidden range or a block with a fixed offset. The search looks for such a
/// plan. It repeats these steps:
/// - It picks a section, and tries for each open block whether that block uses the byte at the section's `low`. It only
/// picks a section for which each of these blocks would lie directly on the `low` of all sections in which the block
/// is live. The section with the lowest `low` always has this property.
/// - It raises the least offset of every open block to the highest `low` of the block's sections, and the `low` of
/// every section to the least offset of the section's open blocks. The skipped bytes reduce the slack. If a slack is
/// negative, there is no plan.
/// - If a block cannot use the byte, it raises the block's least offset to the next address at which another block or
/// an obstacle can end, because the block must lie on one of these.
/// - Between two neighbouring sections that have no open block in common, it divides the problem into two parts, and
/// searches one after the other. If a part has no solution, its blocks and their ranges of offsets are remembered, so
/// that it is never searched again.
///
/// The search prefers sections in which few blocks can use the byte, and sections with little slack. Of the blocks, it
/// prefers those that begin or end together with their valley. A valley is a range of sections with equal `low` between
/// sections with higher `low`. After a number of attempts to place a block without finding a solution, the search
/// restarts with other random noise, which changes these choices.
class Search {
 public:
  /// Prepares a search for a plan of at most `capacity` bytes. Each number `strategy` (0, 1, ...) gives a different
  /// search.
  Search(const Sections& sections, std::int64_t capacity, int strategy);

  /// Continues the search until one of the following holds:
  /// - There is a verdict.
  /// - This call has done `work` units of work, or all calls together have done more than `*most` units.
  /// - The time limit or the stop flag of `watch` ends the search.
  ///
  /// A unit of work is about one visit of a block or a section.
  Verdict run(std::int64_t work, const std::atomic<std::int64_t>& most, const core::Stopwatch& watch);

  std::int64_t work() const { return work_; }
  std::int64_t nodes() const { return nodes_; }
  /// Returns the offsets in the order of Sections::movable; valid if the verdict is `fits`.
  const std::vector<std::int64_t>& offsets() const { return offset_; }

 private:
  enum class Side : std::uint8_t { bottom, top };
  enum class Result : std::uint8_t { solved, failed, cut };  ///< cut: a limit ended the search
  /// Names a byte about which the search decides: the byte at the section's `low` (bottom) or just below its `high`
  /// (top).
  struct Cell {
    std::int32_t section = -1;
    Side side = Side::bottom;
  };
  /// Two hashes that identify a part by its blocks and their ranges of offsets.
  struct Key {
    std::uint64_t a = 0, b = 0;
    bool operator==(const Key&) const = default;
  };
  /// Records the old value of a variable that was changed, so that the change can be undone.
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
  bool held(std::int32_t b, const Sections::Part& part, Side side) const;
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
  /// - twin_: the first of the blocks with the same alignment, sections and sizes.
  std::vector<std::int32_t> first_, last_, twin_;
  std::vector<std::int64_t> size_, smallest_;  ///< for each block, its largest and smallest size

  /// Indexed by section.
  /// - low_, high_, slack_: `low`, `high` and the slack of the section, as explained at the class.
  /// - open_count_: number of open blocks.
  std::vector<std::int64_t> low_, high_, slack_, open_count_;
  std::vector<std::int64_t> least_, most_;     ///< for each block, its least and largest possible offset
  std::vector<std::int64_t> hash_a_, hash_b_;  ///< for each block, two hashes of its number and its range of offsets
  std::vector<std::int64_t> placed_;
  std::vector<std::int64_t> offset_;
  std::vector<Change> changes_;
  std::vector<std::int32_t> open_;      ///< lists of open blocks, one per recursive call, each sorted by first section
  std::vector<std::int32_t> dirty_[2];  ///< for each Side, the sections that settle() must examine
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
