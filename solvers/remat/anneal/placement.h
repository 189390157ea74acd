#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"

namespace cairn::solvers {

/// Stores the addresses of all values of an EditableSchedule in an arena of fixed size, and updates them while the
/// schedule is edited. Two values are in conflict if they are in memory at the same time and share bytes of the arena.
/// Without conflicts, the addresses are a plan. The values are stored by address, so an edit visits only values at
/// nearby addresses.
///
/// A move is a sequence of calls:
/// - The caller edits the schedule, and records each edit by inserted(), dropping() or relocate().
/// - settle() updates lifetimes and conflicts. After it, repair() can reduce the number of conflicts.
/// - The caller looks at conflicts() and overlap(), and keeps the move by commit(). To give up the move, the caller
///   undoes its edits of the schedule and calls undo().
class Placement {
 public:
  using Occurrence = core::EditableSchedule::Occurrence;
  /// The number of a rectangle in the plane of steps and bytes. Each output of an occurrence (a step of the schedule)
  /// has a rectangle, and so has its scratch. The rectangles of one occurrence have consecutive numbers, which stay
  /// reserved for them while the occurrence is not in the schedule.
  using Rect = std::int32_t;
  static constexpr Rect kNoRect = -1;

  /// Makes an empty arena of `capacity` bytes. No node's output may take over the storage of an input, because every
  /// value has an address of its own (can_search_placed()). No single value may be larger than the arena. A number that
  /// divides all sizes, the capacity and the addresses given to assign() also divides all later addresses, so alignment
  /// is preserved. The graph must outlive the object.
  Placement(const core::Graph& graph, std::int64_t capacity, std::uint64_t seed);

  /// Restarts with a schedule and addresses. For each step, `offsets` contains the addresses of its outputs of more
  /// than 0 bytes, followed by the address of its scratch, if any. Lowers addresses at which a value would exceed the
  /// capacity. Takes O(T * v) time for T steps and v values at nearby addresses.
  void assign(const core::EditableSchedule& schedule, std::span<const std::int64_t> offsets);
  /// Returns the current addresses, in the order of assign(). O(T) for T steps.
  std::vector<std::int64_t> offsets(const core::EditableSchedule& schedule) const;

  /// Records that occurrence o was inserted. If `like` is an occurrence of the same node, o gets the addresses of
  /// `like`, which the caller must drop before settle(). If `like` is kNone, settle() looks for free addresses.
  void inserted(const core::EditableSchedule& schedule, Occurrence o, Occurrence like);
  /// Records that occurrence o is about to be dropped. Must be called before the schedule drops o.
  void dropping(const core::EditableSchedule& schedule, Occurrence o);
  /// Gives a value another address: in a gap between other values, or right above or below a random value that is in
  /// memory at the same time as this value. Takes O(v) time for v values.
  void relocate(Rect r);
  /// Updates lifetimes and conflicts after the recorded edits.
  void settle(const core::EditableSchedule& schedule);
  /// Moves values that the move changed, and values in conflict with them, to other addresses, one at a time. Stops
  /// after `tries` attempts, or as soon as conflicts() is at most its value before the move. Must be called after
  /// settle().
  void repair(int tries);
  void commit();
  void undo(const core::EditableSchedule& schedule);

  /// Moves every value down until it touches a value that is in memory at the same time, or the bottom of the arena.
  /// With `from_top`, moves every value up in the same way. Values are taken in the order of their addresses. The
  /// result has no conflicts, even if there were conflicts before. If the result fits into the arena, keeps it and
  /// returns true. Otherwise changes nothing and returns false. Takes O(v^2) time with a small constant, for v values.
  bool straighten(bool from_top);
  /// Returns the work of two calls of straighten(), one in each direction, in the unit of work().
  std::int64_t straightening() const {
    const auto values = static_cast<std::int64_t>(owner_.size());
    return values * values / 16 + 1;
  }

  std::int64_t conflicts() const { return conflicts_; }
  /// Returns the sum, over all conflicts, of shared bytes times shared steps. The number of shared steps is
  /// approximate, because it is estimated from keys.
  double overlap() const { return overlap_ / spacing_; }
  /// Returns the work so far. One unit is about 16 visited values.
  std::int64_t work() const { return work_; }
  /// Returns whether settle() failed because an inserted occurrence needed a key and there was no unused key between
  /// the keys of its neighbours (see Key). If so, the caller must undo the move.
  bool crowded() const { return crowded_; }

  /// Picks a random value that is in a conflict. Returns kNoRect if a few attempts found none.
  Rect conflicting();
  /// Picks a random value that is in conflict with r. Returns kNoRect if there is none.
  Rect partner(Rect r);
  Occurrence occurrence(Rect r) const { return owner_[r]; }
  /// Returns the occurrence at which two values in conflict begin to be in memory together.
  Occurrence meeting(Rect a, Rect b) const { return owner_[at(a).first >= at(b).first ? a : b]; }

 private:
  /// A number that stands for the time of an occurrence. Keys ascend along the schedule. There are gaps between them,
  /// so that an occurrence can be inserted without changing the keys of others.
  using Key = std::int32_t;
  static constexpr Key kNoKey = -1, kLastKey = Key{1} << 30;
  /// Describes a rectangle: the keys in [first, last) and the bytes in [bottom, top). It is empty if first == last.
  struct Place {
    Key first = 0, last = 0;
    std::int64_t bottom = 0, top = 0;

    bool empty() const { return first == last; }
    bool lives_with(const Place& other) const { return first < other.last && other.first < last; }
    bool meets(const Place& other) const { return lives_with(other) && bottom < other.top && other.bottom < top; }
    std::int64_t bytes() const { return top - bottom; }
    void move_to(std::int64_t new_bottom) {
      top += new_bottom - bottom;
      bottom = new_bottom;
    }
  };
  struct Item {
    Place place;
    Rect rect;
  };
  /// A range of addresses of the arena, with the rectangles (items) whose `bottom` is in this range.
  struct Shelf {
    std::vector<Item> items;
    std::int64_t reach = 0;  ///< upper bound on the `top` of all items
  };
  /// Where a rectangle is stored: the number of the shelf (-1: in none) and the index among the items of the shelf.
  struct Slot {
    std::int32_t shelf = -1, index = 0;
  };
  struct Sum {
    double overlap = 0;
    std::int64_t conflicts = 0;
  };
  struct Change {
    Rect rect;
    Place before;
  };

  std::int32_t rect_count(core::NodeId v) const;
  std::int64_t size(core::NodeId v, std::int32_t k) const;
  void add_rects(const core::EditableSchedule& schedule, Occurrence o);
  Place life(const core::EditableSchedule& schedule, Occurrence o, std::int32_t k) const;
  Place at(Rect r) const;
  void put(Rect r, const Place& p);
  void take(Rect r);
  void change(Rect r, const Place& p);
  template <class Visit>
  void for_each_conflict(const Place& p, Rect but, const Visit& visit) const;
  Sum sum(const Place& p, Rect but) const;
  std::int64_t room_for(Rect r, const Place& p);

  void touch(Occurrence o);
  void touch_read(const core::EditableSchedule& schedule, Occurrence o);
  void give_keys(const core::EditableSchedule& schedule);
  void lay_out_keys(const core::EditableSchedule& schedule);
  void count();
  void pool(Rect r);
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_.uniform() * static_cast<double>(n)); }

  const core::Graph& graph_;
  const std::int64_t capacity_;
  core::Random random_;
  double spacing_ = 1;  ///< average distance between the keys of neighbouring occurrences
  std::vector<Shelf> shelves_;
  std::int64_t unit_ = 0;  ///< greatest common divisor of all sizes, in bytes
  /// Bytes of the address range of a shelf; a multiple of unit_.
  std::int64_t shelf_bytes_ = 1;
  // The next three vectors are indexed by rectangle.
  std::vector<Occurrence> owner_;
  std::vector<Slot> slots_;
  std::vector<std::uint8_t> pooled_;
  // The next three vectors are indexed by occurrence.
  /// key of each occurrence; kNoKey: the occurrence was inserted by the current move and has no key yet
  std::vector<Key> keys_;
  std::vector<Rect> first_rect_;
  std::vector<std::uint8_t> touched_;

  mutable std::int64_t work_ = 0;
  /// The sum, over all conflicts, of shared bytes times shared keys, now and before the current move.
  double overlap_ = 0, overlap_before_ = 0;
  std::int64_t conflicts_ = 0, conflicts_before_ = 0;
  /// Contains every value that may be in a conflict, and possibly other values.
  std::vector<Rect> pool_;
  // The following fields describe the current move.
  std::vector<Occurrence> touched_list_;
  std::vector<std::pair<Occurrence, Occurrence>> likes_;
  std::vector<std::pair<Occurrence, Key>> key_changes_;
  std::vector<Change> changes_;
  bool crowded_ = false;
  std::vector<std::pair<std::int64_t, std::int64_t>> around_;  ///< temporary data of room_for()
  std::vector<Item> line_;                                     ///< temporary data of straighten()
};

}  // namespace cairn::solvers
