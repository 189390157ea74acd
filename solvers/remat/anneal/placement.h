#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"

namespace cairn::solvers {

/// Addresses of all values of an EditableSchedule in an arena of fixed height, maintained while the schedule is edited,
/// for searches over order, recomputation and addresses at once. Two values that are live at once and share bytes are a
/// *conflict*; without conflicts the offsets are a plan. Values are indexed by their addresses: a changed lifetime
/// costs a visit to the values beside it, and little for the others.
///
/// A move is a sequence of calls: note the edits (inserted(), dropping(), relocate()), settle(), optionally repair(),
/// read the conflicts, and then commit() or, after the schedule's edits were undone, undo().
class Placement {
 public:
  using Occurrence = core::EditableSchedule::Occurrence;
  /// A rectangle of steps and bytes: an output, or the scratch, of an occurrence. The rectangles of one occurrence are
  /// numbered consecutively and keep their numbers while it is dropped.
  using Rect = std::int32_t;
  static constexpr Rect kNoRect = -1;

  /// Whether the graph can be placed. A value that takes over another's storage has no place of its own, so graphs with
  /// such nodes cannot.
  static bool takes(const core::Graph& graph);

  /// Makes an arena of `capacity` bytes; no single value may exceed it. Offsets are multiples of any number that
  /// divides sizes, capacity and given offsets. The graph must outlive the object.
  Placement(const core::Graph& graph, std::int64_t capacity, std::uint64_t seed);

  /// Restarts with a schedule and, for each of its steps, the offsets of the outputs that have bytes and then of the
  /// scratch, if any. Values above the capacity are moved down. O(T * values beside a value).
  void assign(const core::EditableSchedule& schedule, std::span<const std::int64_t> offsets);
  /// Returns the current offsets, in the order of assign(). O(T).
  std::vector<std::int64_t> offsets(const core::EditableSchedule& schedule) const;

  /// Notes that occurrence o was inserted. `like`: an occurrence of the same node whose offsets o takes, and which is
  /// dropped afterwards; kNone: settle() looks for room.
  void inserted(const core::EditableSchedule& schedule, Occurrence o, Occurrence like);
  /// Notes that occurrence o is about to be dropped.
  void dropping(const core::EditableSchedule& schedule, Occurrence o);
  /// Moves a rectangle to another offset: to free room, or beside another value. O(values).
  void relocate(Rect r);
  /// Updates lifetimes and conflicts after the edits that were noted.
  void settle(const core::EditableSchedule& schedule);
  /// Relocates changed values, or values in conflict with these, one at a time and at most `tries` times, as long as
  /// there are more conflicts than before the move. Call it after settle().
  void repair(int tries);
  void commit();
  void undo(const core::EditableSchedule& schedule);

  /// Moves every value as low as possible above the values that lie below it now and share steps with it; with
  /// `from_top`, as high as possible. There must be no conflicts. Returns whether the result fits; only then is it
  /// kept. O(values^2), but fast.
  bool straighten(bool from_top);
  /// Computes the work of straightening upwards and downwards.
  std::int64_t straightening() const {
    const auto values = static_cast<std::int64_t>(owner_.size());
    return values * values / 16 + 1;
  }

  std::int64_t conflicts() const { return conflicts_; }
  /// Sum of shared bytes times shared steps over all conflicts; the steps are approximate.
  double overlap() const { return overlap_ / spacing_; }
  /// Work so far, in units of some 16 visited values.
  std::int64_t work() const { return work_; }
  /// Whether a settled move found no room in time between its neighbours. If so, the move must be undone.
  bool crowded() const { return crowded_; }

  /// Picks a random settled value that is in a conflict; kNoRect: none was found at once.
  Rect conflicting();
  /// Picks a random value that r is in conflict with; kNoRect: none.
  Rect partner(Rect r);
  Occurrence occurrence(Rect r) const { return owner_[r]; }
  /// Returns the occurrence at which the conflict of two values begins.
  Occurrence meeting(Rect a, Rect b) const { return owner_[at(a).first >= at(b).first ? a : b]; }

 private:
  using Key = std::int32_t;
  static constexpr Key kNoKey = -1, kLastKey = Key{1} << 30;
  /// A rectangle of times [first, last), as keys (ordered numbers that stand for time), and bytes [bottom, top). Empty
  /// if it has no keys.
  struct Place {
    Key first = 0, last = 0;
    std::int64_t bottom = 0, top = 0;

    bool empty() const { return first == last; }
    bool meets(const Place& other) const {
      return first < other.last && other.first < last && bottom < other.top && other.bottom < top;
    }
  };
  struct Item {
    Place place;
    Rect rect;
  };
  /// A part of the arena: the items whose bottoms lie in it.
  struct Shelf {
    std::vector<Item> items;
    std::int64_t reach = 0;  ///< highest top of the items, or more
  };
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
  double spacing_ = 1;  ///< mean distance between the keys of neighbouring occurrences
  std::vector<Shelf> shelves_;
  std::int64_t unit_ = 0;  ///< number of bytes that divides all sizes
  /// Bytes of a shelf; a multiple of unit_, so that offsets stay multiples of an alignment.
  std::int64_t shelf_bytes_ = 1;
  // By rectangle.
  std::vector<Occurrence> owner_;
  std::vector<Slot> slots_;
  std::vector<std::uint8_t> pooled_;
  // By occurrence.
  std::vector<Key> keys_;  ///< key of each occurrence, ascending along the schedule
  std::vector<Rect> first_rect_;
  std::vector<std::uint8_t> touched_;

  mutable std::int64_t work_ = 0;
  /// Sum over conflicts of shared keys times shared bytes, now and before the move.
  double overlap_ = 0, overlap_before_ = 0;
  std::int64_t conflicts_ = 0, conflicts_before_ = 0;
  std::vector<Rect> pool_;  ///< every value in a conflict that was new since the last count(), and others
  // State of the current move.
  std::vector<Occurrence> touched_list_;
  std::vector<std::pair<Occurrence, Occurrence>> likes_;
  std::vector<std::pair<Occurrence, Key>> key_changes_;
  std::vector<Change> changes_;
  bool crowded_ = false;
  std::vector<std::pair<std::int64_t, std::int64_t>> around_;  ///< work space
  std::vector<Item> line_;                                     ///< work space
};

}  // namespace cairn::solvers
