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

/// A depth-first search for offsets below a capacity; complete, given enough time.
///
/// Blocks are stacked in every section from the bottom and, if no byte is to spare, from the top as well. The blocks
/// placed from below end at `low`, those from above begin at `high`. The slack of a section is the space between the
/// two, less the loads of its open blocks. If there is a plan, there is one in which every block lies on another one,
/// on an obstacle or at 0 (push all down), so the search
/// - picks a section whose byte at `low` can only be held by blocks that lie level on what is below them (the
///   lowest place always qualifies), and decides which block holds it, or none;
/// - raises every open block to the highest `low` below it, and `low` to the lowest of the open blocks above it, which
///   costs slack; below zero there is no plan;
/// - excludes a block from the byte in question by raising it to the next top on which it could lie;
/// - splits into parts where no open block spans two sections: the parts are searched one by one, and a part that fails
///   is remembered by its blocks and their ranges of offsets, for all restarts.
/// The section with the fewest answers goes first, those with much slack last. The answer that touches most walls of
/// its valley goes first. Noise is added to both, anew at every restart.
class Search {
 public:
  /// Starts a search. Each `strategy` 0, 1, .. searches in a different way.
  Search(const Sections& sections, std::int64_t capacity, int strategy);

  /// Continues until there is a verdict, until `work` more units are done (visits of blocks and sections,
  /// deterministic), until more than *most units are done in all, or until the limit's time or stop flag ends it.
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
  std::vector<std::int32_t> first_, last_, twin_;  ///< by block: first and last section; first block that is like it
  std::vector<std::int64_t> size_, smallest_;      ///< by block: largest and smallest size

  /// By section: ends of the placed blocks, slack, number of open blocks.
  std::vector<std::int64_t> low_, high_, slack_, open_count_;
  std::vector<std::int64_t> least_, most_;     ///< by block: range of its possible offsets
  std::vector<std::int64_t> hash_a_, hash_b_;  ///< by block: two hashes of the block and its range
  std::vector<std::int64_t> placed_;           ///< by block: whether it is placed
  std::vector<std::int64_t> offset_;
  std::vector<Change> changes_;
  std::vector<std::int32_t> open_;  ///< stack of lists of open blocks, each list by first section
  std::vector<std::int32_t> dirty_[2];
  std::vector<char> is_dirty_[2];
  std::vector<Key> failed_;  ///< hash table of parts without a solution

  // Scratch of pick_cell().
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
